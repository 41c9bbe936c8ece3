------------------------------- MODULE Change -------------------------------
(* What the output holds: a line of changes to one manifest, each of which supersedes the one before. The first is its *)
(* commit or dead letter; a later one makes lost rows again, or takes some away. A rule of retention removes files and *)
(* puts that on record first. Drivers of the job, rebuilds, erasures and removals carry what is decided to done, and   *)
(* cleaners and readers are beside them. Each may be held up at any step for as long as it takes, or stop there: it    *)
(* dies, or a call that took effect is reported as failed. Its deletes may take effect at any later time.              *)
(* A manifest has two files: rejects and rows, or, if rows may be laid otherwise, two with one row each. Files in      *)
(* place are written under their final names, which no other attempt has, and a table lists them there.                *)
EXTENDS Integers, FiniteSets

CONSTANTS Drivers, Rebuilders, Expirers, Readers,
          IsDone,         \* whether it begins with a commit that is done; else with a delivered manifest
          MaxAttempts, MaxGenerations, MaxStops,
          MaxDamages,     \* how often files of a commit that is done get lost
          InPlace,        \* the files that are written in place
          IsLaidAnew,     \* whether an attempt may lay the rows into its two files in the other order
          LateCopies,     \* whether a copy may take effect after its process is gone
          Tidying,        \* whether rebuilds give up at their markers, and clear up after others
          Cleans,         \* whether there is a cleaner
          Rule,           \* of retention: "retired" takes rows and rejects, "rejects" only these
          Guards

Processes == Drivers \union Rebuilders \union Expirers
Attempts == 1..MaxAttempts
Generations == 1..MaxGenerations
Files == {1, 2}
Names == 1..(2 * MaxGenerations)
Taking == IF Rule = "retired" THEN Files ELSE {1}
NoFile == <<0, 0>>
Dead == -1
Change(attempt, names, first, removes) == [attempt |-> attempt, names |-> names, first |-> first, removes |-> removes]
NoChange == Change(0, <<0, 0>>, 1, {})
Has(guard) == guard \in Guards

VARIABLES
    delivered,  \* whether the manifest is in the watched prefix
    accepted,   \* whether its id is bound
    original,   \* the manifest in `archive/` or `failed/`: "none", "kept" or "expired"
    number,     \* how many attempts are on record
    generation, \* of each attempt
    swapped,    \* the attempts whose first file has the second row
    kept,       \* the attempts whose verified commit is kept
    staged,     \* the files that each attempt has in its staging, or in place
    decided,    \* the change of each generation
    done,       \* the generations that are done
    marker,     \* the open markers, each with its generation and, of a rebuild, its attempt
    visible,    \* the file under each final name, or in the table: its attempt and its number there
    lost,       \* the names whose files a person lost
    late,       \* whether a copy of an earlier generation took effect after the next one was decided
    begun,      \* the generations of which an intention to remove is in the store
    recorded,   \* those that a record takes
    sent,       \* deletes and copies that may still take effect
    cleaner,    \* its step, and the staging that it listed
    reader, damages, stops,
    proc        \* each process: its step, and what it knows

life == <<delivered, accepted, original>>
work == <<number, generation, swapped, kept>>
line == <<decided, done, marker>>
output == <<visible, lost, late>>
log == <<begun, recorded>>
others == <<cleaner, reader, damages>>
vars == <<life, work, staged, line, output, log, sent, others, stops, proc>>

Idle == [at |-> "idle", work |-> 0, known |-> 0, generation |-> 0, made |-> NoChange, next |-> 1, rest |-> 2,
         listed |-> {}, opened |-> FALSE]
Waiting == [at |-> "idle", held |-> {}, generation |-> 1, file |-> 1, isLost |-> FALSE]

Init ==
    /\ delivered = ~IsDone
    /\ accepted = IsDone
    /\ original = IF IsDone THEN "kept" ELSE "none"
    /\ number = IF IsDone THEN 1 ELSE 0
    /\ generation = [a \in Attempts |-> 1]
    /\ swapped = {}
    /\ kept = IF IsDone THEN {1} ELSE {}
    /\ staged = [a \in Attempts |-> IF IsDone /\ a = 1 /\ Drivers # {} THEN Files ELSE {}]
    /\ decided = [g \in Generations |-> IF IsDone /\ g = 1 THEN Change(1, <<1, 2>>, 1, {}) ELSE NoChange]
    /\ done = IF IsDone THEN {1} ELSE {}
    /\ marker = IF IsDone /\ Drivers # {} THEN {<<1, 0>>} ELSE {}
    /\ visible = [n \in Names |-> IF IsDone /\ n \in Files THEN <<1, n>> ELSE NoFile]
    /\ lost = {} /\ late = FALSE
    /\ begun = {} /\ recorded = {} /\ sent = {}
    /\ cleaner = [at |-> "idle", listed |-> {}]
    /\ reader = [v \in Readers |-> Waiting]
    /\ damages = 0 /\ stops = 0
    /\ proc = [p \in Processes |->
                IF IsDone /\ p \in Drivers THEN [Idle EXCEPT !.at = "publish", !.generation = 1] ELSE Idle]

At(p, step) == proc[p].at = step
Set(p, changed) == proc' = [proc EXCEPT ![p] = changed]
GoTo(p, step) == Set(p, [proc[p] EXCEPT !.at = step])

IsDecided(g) == decided[g] # NoChange
Latest == CHOOSE g \in 0..MaxGenerations : /\ g = 0 \/ IsDecided(g)
                                           /\ \A h \in Generations : h > g => ~IsDecided(h)
IsCommit(g) == decided[g].attempt > 0
Row(file) == IF file = NoFile THEN 0 ELSE IF file[1] \in swapped THEN 3 - file[2] ELSE file[2]
IsPublished(g, f) == visible[decided[g].names[f]] = <<decided[g].attempt, f>>
Cleared(names) == [n \in Names |-> IF n \in names THEN NoFile ELSE visible[n]]

\* The folder of an attempt.
Folder(a) == IF Has("each attempt has its own staging") THEN a ELSE 1
Staged(a) == staged[Folder(a)]
Upto(g) == {a \in 1..number : generation[a] <= g}
Unstaged(folders) == [a \in Attempts |-> IF a \in folders THEN staged[a] \intersect InPlace ELSE staged[a]]
Discarded(a) == [staged EXCEPT ![Folder(a)] = {}]

\* Once its change is on record, the files in place of all other attempts are orphans.
IsOrphaned(a) ==
    LET winner == decided[generation[a]].attempt IN
    /\ staged[a] \intersect InPlace # {}
    /\ winner # 0 \/ ~Has("files in place of what is not decided stay")
    /\ winner <= 0 \/ a # Folder(winner) \/ ~Has("files in place that a commit names stay")

\* What a record takes is of its generation, or of an earlier one.
IsTaken(f, g, records) == f \in Taking /\ \E x \in records : g <= x
Takes(f, g, records) ==
    IF Has("a record takes nothing of a later generation") THEN IsTaken(f, g, records)
    ELSE f \in Taking /\ records # {}

RollForward(p, g) == [Idle EXCEPT !.generation = g, !.at = IF g = 1 THEN "publish" ELSE "make way",
                                  !.next = decided[g].first, !.rest = 3 - decided[g].first]

-----------------------------------------------------------------------------
\* The first change: a driver takes the manifest in, and tries.
Receive(p) ==
    /\ p \in Drivers /\ At(p, "idle")
    /\ delivered
    /\ accepted' = TRUE
    /\ GoTo(p, "read")
    /\ UNCHANGED <<delivered, original, work, staged, line, output, log, sent, others, stops>>

\* Recovery, or another sweep of the index; a rebuild cleans up what is done.
Recover(p) ==
    /\ At(p, "idle")
    /\ \/ p \in Drivers /\ marker # {}
       \/ p \in Rebuilders /\ \E m \in marker : m[1] <= Latest
    /\ GoTo(p, "read")
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

ReadState(p) ==
    /\ At(p, "read")
    /\ Set(p, CASE Latest = 0 -> [Idle EXCEPT !.at = "open", !.known = number, !.generation = 1]
                [] Latest > 0 /\ Latest \in done -> [Idle EXCEPT !.at = "unstage", !.generation = Latest]
                [] OTHER -> RollForward(p, Latest))
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* An earlier attempt was verified, and all of its files are there.
FindVerified(p) ==
    /\ At(p, "review")
    /\ \E a \in kept :
        /\ a <= proc[p].known
        /\ Staged(a) = Files
        /\ Set(p, [proc[p] EXCEPT !.at = "decide", !.work = a, !.made = Change(a, <<1, 2>>, 1, {})])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* The attempts that count are used up, or the manifest cannot be compacted.
Refuse(p) ==
    /\ \/ At(p, "review") /\ proc[p].known > 0
       \/ At(p, "inspect")
    /\ Set(p, [proc[p] EXCEPT !.at = "decide", !.work = Dead, !.made = Change(Dead, <<0, 0>>, 1, {})])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* An attempt at a change of any generation.
Attempt(p) ==
    /\ At(p, "review") \/ At(p, "attempt")
    /\ number < MaxAttempts
    /\ number' = number + 1
    /\ generation' = [generation EXCEPT ![number + 1] = proc[p].generation]
    /\ Set(p, [proc[p] EXCEPT !.at = IF proc[p].generation = 1 THEN "inspect" ELSE "stage", !.work = number + 1])
    /\ UNCHANGED <<life, swapped, kept, staged, line, output, log, sent, others, stops>>

Inspect(p) ==
    /\ At(p, "inspect")
    /\ staged' = [staged EXCEPT ![Folder(proc[p].work)] = @ \union {1}]
    /\ GoTo(p, "convert")
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops>>

\* The engine may leave out rows.
Convert(p) ==
    /\ At(p, "convert")
    /\ \E files \in {{}, {2}} : staged' = [staged EXCEPT ![Folder(proc[p].work)] = @ \union files]
    /\ GoTo(p, "verify")
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops>>

Verify(p) ==
    /\ At(p, "verify")
    /\ GoTo(p, IF Staged(proc[p].work) = Files \/ ~Has("verify before deciding") THEN "keep" ELSE "failed")
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* A failed attempt looks for the outcome of another driver, and else deletes what it staged.
Fail(p) ==
    /\ At(p, "failed")
    /\ IF IsDecided(1)
       THEN Set(p, RollForward(p, Latest)) /\ UNCHANGED staged
       ELSE staged' = Discarded(proc[p].work) /\ Set(p, Idle)
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops>>

\* From here on, any driver may decide the commit.
Keep(p) ==
    /\ At(p, "keep")
    /\ kept' = kept \union {proc[p].work}
    /\ Set(p, [proc[p] EXCEPT !.at = "decide", !.made = Change(proc[p].work, <<1, 2>>, 1, {})])
    /\ UNCHANGED <<life, number, generation, swapped, staged, line, output, log, sent, others, stops>>

-----------------------------------------------------------------------------
\* A later change: a rebuild finds lost files, or a change that is decided and not done.
Scan(p) ==
    /\ p \in Rebuilders /\ At(p, "idle")
    /\ Latest > 0 /\ IsCommit(Latest)
    /\ \/ /\ Latest \in done
          /\ Latest < MaxGenerations
          /\ \E f \in Files : ~IsPublished(Latest, f)
          /\ Set(p, [Idle EXCEPT !.at = "ask", !.generation = Latest + 1])
       \/ /\ Latest \notin done
          /\ Set(p, RollForward(p, Latest))
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* They may have expired: what another rebuild left open is forgotten then.
Ask(p) ==
    LET base == proc[p].generation - 1
        isNeeded == /\ ~Takes(2, base, recorded)
                    /\ \E f \in Files : ~IsPublished(base, f) /\ ~Takes(f, base, recorded) IN
    /\ At(p, "ask")
    /\ Set(p, CASE isNeeded -> [proc[p] EXCEPT !.at = "attempt"]
                [] ~isNeeded /\ Has("what a dead rebuild left open is forgotten when its files expired")
                    -> [Idle EXCEPT !.at = "list", !.generation = base]
                [] OTHER -> Idle)
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* Staging adds up here: Verify shows what comes of staging that does not.
Stage(p) ==
    /\ At(p, "stage")
    /\ staged' = [staged EXCEPT ![proc[p].work] = Files]
    /\ \E attempts \in IF IsLaidAnew THEN {{}, {proc[p].work}} ELSE {{}} : swapped' = swapped \union attempts
    /\ kept' = kept \union {proc[p].work}
    /\ GoTo(p, "choose")
    /\ UNCHANGED <<life, number, generation, line, output, log, sent, others, stops>>

\* What a late driver could still publish goes, before names are compared.
UnstageEarlier(p) ==
    /\ At(p, "choose")
    /\ staged' = IF Has("earlier staging is deleted before names are chosen")
                 THEN Unstaged(Upto(proc[p].generation - 1)) ELSE staged
    /\ GoTo(p, "compare")
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops>>

\* What is there under the name whose file would be replaced by a staged one.
Old(base, f) == visible[decided[base].names[f]]
HasOther(base, a, f) == Old(base, f) # NoFile /\ Row(Old(base, f)) # Row(<<a, f>>)

\* The next change: its final names, the file that is published first, and the names given up.
Successor(base, a) ==
    LET previous == decided[base]
        differing == {f \in Files : HasOther(base, a, f)}
        several == IF Cardinality(differing) = 1 THEN {} ELSE differing
        expired == IF Has("a name of expired rejects is never used again")
                   THEN {f \in {1} : Takes(f, base, recorded)} ELSE {}
        isFresh(f) == \/ f \in expired \union InPlace
                      \/ f \in several /\ Has("a given-up name is never used again")
        name(f) == IF isFresh(f) THEN 2 * base + f ELSE previous.names[f]
        givenUp == several \union expired \union InPlace
    IN Change(a, <<name(1), name(2)>>,
              IF Cardinality(differing) = 1 /\ Has("a single file with other rows is replaced first")
              THEN CHOOSE f \in Files : f \in differing ELSE 1,
              {previous.names[f] : f \in givenUp} \union previous.removes)

\* The staged files are read and compared with those that are published.
Choose(p) ==
    /\ At(p, "compare")
    /\ IF staged[proc[p].work] = Files
       THEN Set(p, [proc[p] EXCEPT !.at = IF Has("a rebuild opens its manifest before it asks again") THEN "open" ELSE "check",
                                   !.made = Successor(proc[p].generation - 1, proc[p].work)])
       ELSE Set(p, Idle)
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

Marker(g, a) == <<g, IF g > 1 /\ Has("each attempt has a marker of its own") THEN a ELSE 0>>
Own(p) == Marker(proc[p].generation, proc[p].work)

Open(p) ==
    /\ At(p, "open")
    /\ marker' = marker \union {Own(p)}
    /\ GoTo(p, CASE proc[p].generation = 1 -> "review"
                 [] Has("a rebuild opens its manifest before it asks again") -> "check"
                 [] OTHER -> "decide")
    /\ UNCHANGED <<life, work, staged, decided, done, output, log, sent, others, stops>>

\* It asks once more whether what it would publish expired.
Check(p) ==
    LET base == proc[p].generation - 1
        isTaken == \/ Takes(2, base, recorded)
                   \/ proc[p].made.names[1] = decided[base].names[1] /\ Takes(1, base, recorded)
        givesUp == isTaken /\ Has("a rebuild gives up if its files expired meanwhile") IN
    /\ At(p, "check")
    /\ IF givesUp
       THEN marker' = marker \ {Own(p)} /\ staged' = Discarded(proc[p].work) /\ Set(p, Idle)
       ELSE /\ GoTo(p, IF Has("a rebuild opens its manifest before it asks again") THEN "decide" ELSE "open")
            /\ UNCHANGED <<marker, staged>>
    /\ UNCHANGED <<life, work, decided, done, output, log, sent, others, stops>>

\* Another trouble: it deletes what it staged, and its marker.
GiveUp(p) ==
    /\ Tidying
    /\ At(p, "check")
    /\ marker' = marker \ {Own(p)}
    /\ staged' = Discarded(proc[p].work)
    /\ Set(p, Idle)
    /\ UNCHANGED <<life, work, decided, done, output, log, sent, others, stops>>

\* A rebuild finds a manifest intact, or expired: markers of the next generation may be left of rebuilds that died.
\* What has not decided for an hour is taken for dead, and is so here.
AboutToDecide(a) == \E p \in Rebuilders : proc[p].work = a /\ (At(p, "check") \/ At(p, "decide"))

FindIntact(p) ==
    /\ Tidying
    /\ p \in Rebuilders /\ At(p, "idle")
    /\ Latest \in done
    /\ Latest < MaxGenerations
    /\ \A f \in Files : IsPublished(Latest, f)
    /\ Set(p, [Idle EXCEPT !.at = "list", !.generation = Latest])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

ListMarkers(p) ==
    LET g == proc[p].generation
        isOver(m) == \/ ~\E a \in 1..number : Marker(m[1], a) = m /\ generation[a] = m[1] /\ AboutToDecide(a)
                     \/ ~Has("a marker whose rebuild may still decide stays")
        isLeft == ~IsDecided(g + 1) \/ ~Has("the outcome is read again before markers are forgotten")
    IN
    /\ At(p, "list")
    /\ Set(p, IF isLeft
              THEN [proc[p] EXCEPT !.at = "forget", !.listed = {m \in marker : m[1] = g + 1 /\ isOver(m)}] ELSE Idle)
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

Forget(p) ==
    /\ At(p, "forget")
    /\ marker' = marker \ proc[p].listed
    /\ Set(p, Idle)
    /\ UNCHANGED <<life, work, staged, decided, done, output, log, sent, others, stops>>

-----------------------------------------------------------------------------
\* The commit point: a create-only record at the place of what it supersedes, and one place for a commit and a dead
\* letter. A rebuild that comes second deletes what it staged, and publishes the winner's files.
Decide(p) ==
    LET g == proc[p].generation
        wins == \/ ~IsDecided(g)
                \/ ~Has("only one change supersedes another")
                \/ proc[p].work = Dead /\ ~Has("commit and dead letter share one key") IN
    /\ At(p, "decide")
    /\ decided' = IF wins THEN [decided EXCEPT ![g] = proc[p].made] ELSE decided
    /\ Set(p, IF wins \/ g = 1 THEN [proc[p] EXCEPT !.at = "follow", !.work = 0, !.made = NoChange, !.known = 0]
              ELSE [proc[p] EXCEPT !.at = "lost"])
    /\ UNCHANGED <<life, work, staged, done, marker, output, log, sent, others, stops>>

Discard(p) ==
    /\ At(p, "lost")
    /\ staged' = IF Has("a loser deletes only its own staging") THEN Discarded(proc[p].work)
                 ELSE Unstaged({a \in 1..number : generation[a] = proc[p].generation})
    /\ Set(p, [proc[p] EXCEPT !.at = "follow", !.work = 0, !.made = NoChange])
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops>>

Follow(p) ==
    /\ At(p, "follow")
    /\ Set(p, RollForward(p, Latest))
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* What an earlier change staged goes; then the names that are given up.
MakeWay(p) ==
    /\ At(p, "make way")
    /\ staged' = Unstaged(Upto(proc[p].generation - 1))
    /\ GoTo(p, "remove names")
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops>>

RemoveNames(p) ==
    /\ At(p, "remove names")
    /\ visible' = IF Has("given-up names are deleted before anything is published")
                  THEN Cleared(decided[proc[p].generation].removes) ELSE visible
    /\ GoTo(p, "publish")
    /\ UNCHANGED <<life, work, staged, line, lost, late, log, sent, others, stops>>

PublishOne(p) ==
    LET g == proc[p].generation f == proc[p].next name == decided[g].names[f] IN
    /\ At(p, "publish")
    /\ IsCommit(g)
    /\ f \in Staged(decided[g].attempt)
    /\ visible' = [visible EXCEPT ![name] = <<decided[g].attempt, f>>]
    /\ lost' = lost \ {name}
    /\ Set(p, IF proc[p].rest = 0 THEN [proc[p] EXCEPT !.at = "published", !.next = 1, !.rest = 2]
              ELSE [proc[p] EXCEPT !.next = proc[p].rest, !.rest = 0])
    /\ UNCHANGED <<life, work, staged, line, late, log, sent, others, stops>>

\* The staged file is gone: another process is further, perhaps with a later change, or somebody has to know.
FindStagingGone(p) ==
    LET g == proc[p].generation IN
    /\ At(p, "publish")
    /\ IsCommit(g)
    /\ proc[p].next \notin Staged(decided[g].attempt)
    /\ Set(p, CASE Latest > g -> RollForward(p, Latest)
                [] g \in done -> [proc[p] EXCEPT !.at = "published", !.next = 1, !.rest = 2]
                [] OTHER -> Idle)
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

Bury(p) ==
    /\ At(p, "publish")
    /\ ~IsCommit(proc[p].generation)
    /\ original' = "kept"
    /\ GoTo(p, "published")
    /\ UNCHANGED <<delivered, accepted, work, staged, line, output, log, sent, others, stops>>

Finish(p) ==
    /\ At(p, "published") \/ (At(p, "publish") /\ ~Has("done follows publication"))
    /\ done' = done \union {proc[p].generation}
    /\ Set(p, [proc[p] EXCEPT !.at = "unstage", !.next = 1, !.rest = 2])
    /\ UNCHANGED <<life, work, staged, decided, marker, output, log, sent, others, stops>>

Spared(g) == IF Has("clean-up spares later generations") THEN Upto(g) ELSE Attempts

\* What is staged is deleted one after the other.
Unstage(p) ==
    /\ At(p, "unstage")
    /\ \E a \in Spared(proc[p].generation) : staged[a] \ InPlace # {} /\ staged' = Unstaged({a})
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops, proc>>

\* What other attempts wrote in place goes after it. A driver that may not delete it leaves it to the sweep.
DeleteOrphans(p) ==
    /\ At(p, "unstage")
    /\ \E a \in Attempts : IsOrphaned(a) /\ staged' = [staged EXCEPT ![a] = @ \ InPlace]
    /\ UNCHANGED <<life, work, line, output, log, sent, others, stops, proc>>

EndUnstaging(p) ==
    /\ At(p, "unstage")
    /\ \A a \in Spared(proc[p].generation) : staged[a] \ InPlace = {}
    /\ GoTo(p, IF delivered THEN "archive" ELSE "close")
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

\* What goes to `archive/` is copied first. It is not copied again if it is there or if the original is gone.
Archive(p) ==
    /\ At(p, "archive")
    /\ original' = IF original = "none" THEN "kept" ELSE original
    /\ GoTo(p, "remove")
    /\ UNCHANGED <<delivered, accepted, work, staged, line, output, log, sent, others, stops>>

Remove(p) ==
    /\ At(p, "remove")
    /\ delivered' = FALSE
    /\ GoTo(p, "close")
    /\ UNCHANGED <<accepted, original, work, staged, line, output, log, sent, others, stops>>

\* A marker of a later generation stays.
Close(p) ==
    /\ At(p, "close")
    /\ marker' = {m \in marker : m[1] > proc[p].generation}
    /\ Set(p, Idle)
    /\ UNCHANGED <<life, work, staged, decided, done, output, log, sent, others, stops>>

-----------------------------------------------------------------------------
\* A change that removes: what may go is found, a date if nothing of it is in work, and rejects by their age.
InWork == marker # {}
FindRemovable(p) ==
    /\ p \in Expirers /\ At(p, "idle")
    /\ Latest \in done /\ Latest \notin recorded
    /\ Rule = "retired" => ~InWork
    /\ Set(p, [Idle EXCEPT !.generation = Latest,
               !.at = IF Has("an intention is in the store before anything expires") THEN "begin" ELSE "record"])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

Begin(p) ==
    /\ At(p, "begin")
    /\ begun' = begun \union {proc[p].generation}
    /\ GoTo(p, "record")
    /\ UNCHANGED <<life, work, staged, line, output, recorded, sent, others, stops>>

\* Any later run finds what was begun and not finished.
FindUnfinished(p) ==
    /\ p \in Expirers /\ At(p, "idle")
    /\ \E g \in begun : Set(p, [Idle EXCEPT !.at = "record", !.generation = g])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

Record(p) ==
    /\ At(p, "record")
    /\ recorded' = IF Has("what expires is on record before it is deleted")
                   THEN recorded \union {proc[p].generation} ELSE recorded
    /\ GoTo(p, "first")
    /\ UNCHANGED <<life, work, staged, line, output, begun, sent, others, stops>>

OpenFirst == Has("open manifests are read before their outcomes")

ReadOpen(p) ==
    /\ At(p, IF OpenFirst THEN "first" ELSE "second")
    /\ Set(p, [proc[p] EXCEPT !.opened = InWork, !.at = IF OpenFirst THEN "second" ELSE "delete"])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

ReadOutcome(p) ==
    /\ At(p, IF OpenFirst THEN "second" ELSE "first")
    /\ Set(p, [proc[p] EXCEPT !.known = Latest, !.listed = {decided[Latest].names[f] : f \in Taking},
                              !.at = IF OpenFirst THEN "delete" ELSE "second"])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, others, stops>>

IsSame(p) == proc[p].known = proc[p].generation \/ ~Has("only the generation on record goes")
Waits(p) == IsSame(p) /\ proc[p].opened /\ Has("what is open is left to a later run")
Doomed(p) == IF IsSame(p) /\ ~Waits(p) THEN proc[p].listed ELSE {}

Delete(p) ==
    /\ At(p, "delete")
    /\ visible' = Cleared(Doomed(p))
    /\ recorded' = recorded \union {proc[p].generation}
    /\ Set(p, IF Waits(p) /\ Has("an intention stays while something waits") THEN Idle
              ELSE [Idle EXCEPT !.at = "finish", !.generation = proc[p].generation])
    /\ UNCHANGED <<life, work, staged, line, lost, late, begun, sent, others, stops>>

EndRemoval(p) ==
    /\ At(p, "finish")
    /\ begun' = begun \ {proc[p].generation}
    /\ Set(p, Idle)
    /\ UNCHANGED <<life, work, staged, line, output, recorded, sent, others, stops>>

-----------------------------------------------------------------------------
\* A process dies, or gives up because an answer was lost. What it has sent may take effect at any later time.
InFlight(p) ==
    LET g == proc[p].generation
        unstaged(attempts) == {<<"unstage", a>> : a \in {b \in attempts : staged[b] \ InPlace # {}}} IN
    CASE At(p, "choose") \/ At(p, "make way") -> unstaged(Upto(g - 1))
      [] At(p, "unstage") -> unstaged(Upto(g)) \union {<<"orphan", a>> : a \in {b \in Attempts : IsOrphaned(b)}}
      [] At(p, "remove names") -> {<<"remove", n>> : n \in decided[g].removes}
      [] At(p, "delete") -> {<<"remove", n>> : n \in Doomed(p)}
      [] At(p, "publish") /\ LateCopies /\ proc[p].next \in Staged(decided[g].attempt) -> {<<"copy", g, proc[p].next>>}
      [] At(p, "decide") /\ g = 1 /\ proc[p].work > 0 /\ ~Has("what was kept stays staged")
         -> {<<"unstage", Folder(proc[p].work)>>}
      [] OTHER -> {}

Stop(p) ==
    /\ ~At(p, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ sent' = sent \union InFlight(p)
    /\ Set(p, Idle)
    /\ UNCHANGED <<life, work, staged, line, output, log, others>>

Land(message) ==
    /\ message \in sent
    /\ sent' = sent \ {message}
    /\ CASE message[1] = "unstage" -> staged' = Unstaged({message[2]}) /\ UNCHANGED output
         [] message[1] = "orphan" ->
                staged' = [staged EXCEPT ![message[2]] = @ \ InPlace] /\ UNCHANGED output
         [] message[1] = "remove" -> visible' = Cleared({message[2]}) /\ UNCHANGED <<staged, lost, late>>
         [] message[1] = "copy" ->
                LET change == decided[message[2]] f == message[3] IN
                /\ visible' = [visible EXCEPT ![change.names[f]] = <<change.attempt, f>>]
                /\ late' = (late \/ Latest > message[2])
                /\ UNCHANGED <<staged, lost>>
    /\ UNCHANGED <<life, work, line, log, others, stops, proc>>

-----------------------------------------------------------------------------
\* A person loses files of a commit that is done.
Damage ==
    /\ damages < MaxDamages
    /\ Latest > 0 /\ IsCommit(Latest)
    /\ \E names \in SUBSET {n \in Names : visible[n] # NoFile} :
        /\ names # {}
        /\ visible' = Cleared(names)
        /\ lost' = lost \union names
    /\ damages' = damages + 1
    /\ UNCHANGED <<life, work, staged, line, late, log, sent, cleaner, reader, stops, proc>>

\* The cleaner lists staging that is old. Any staging may have become old: pauses last as long as it takes.
CleanerLists ==
    LET found == {a \in Attempts : staged[a] \ InPlace # {}} IN
    /\ Cleans /\ cleaner.at = "idle" /\ found # {}
    /\ cleaner' = [at |-> "judge", listed |-> found]
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, reader, damages, stops, proc>>

\* Then it judges the manifest.
CleanerJudges ==
    /\ cleaner.at = "judge"
    /\ cleaner' = IF \/ <<1, 0>> \in marker /\ Has("the cleaner spares open manifests")
                     \/ Latest > 0 /\ IsCommit(Latest) /\ Latest \notin done
                     \/ /\ \E a \in cleaner.listed : generation[a] > Latest /\ Latest > 0
                        /\ Has("the cleaner spares staging of a later generation")
                  THEN [at |-> "idle", listed |-> {}] ELSE [cleaner EXCEPT !.at = "delete"]
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, reader, damages, stops, proc>>

CleanerDeletes ==
    /\ cleaner.at = "delete"
    /\ staged' = Unstaged(cleaner.listed)
    /\ cleaner' = [at |-> "idle", listed |-> {}]
    /\ UNCHANGED <<life, work, line, output, log, sent, reader, damages, stops, proc>>

\* The sweep lists files in place and reads the outcome then. What it decides takes effect at any later time.
Sweep(a) ==
    /\ Cleans /\ IsOrphaned(a)
    /\ <<"orphan", a>> \notin sent
    /\ sent' = sent \union {<<"orphan", a>>}
    /\ UNCHANGED <<life, work, staged, line, output, log, others, stops, proc>>

CleanerExpires ==
    /\ Cleans /\ ~IsDone /\ original = "kept"
    /\ (Latest > 0 /\ IsCommit(Latest) /\ Latest \in done) \/ ~Has("the cleaner spares originals of what is not committed and done")
    /\ original' = "expired"
    /\ UNCHANGED <<delivered, accepted, work, staged, line, output, log, sent, others, stops, proc>>

-----------------------------------------------------------------------------
SetV(v, changed) == reader' = [reader EXCEPT ![v] = changed]

\* Records that a reader has read for something else of the date.
Hold(v) ==
    /\ reader[v].at = "idle"
    /\ SetV(v, [Waiting EXCEPT !.at = "read", !.held = recorded])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, cleaner, damages, stops, proc>>

\* A manifest that is done, and one of its files.
ReadCommit(v) ==
    /\ reader[v].at = "read"
    /\ Latest \in done
    /\ \E f \in Files : SetV(v, [reader[v] EXCEPT !.at = "look", !.generation = Latest, !.file = f])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, cleaner, damages, stops, proc>>

Look(v) ==
    LET name == decided[reader[v].generation].names[reader[v].file] IN
    /\ reader[v].at = "look"
    /\ SetV(v, IF visible[name] # NoFile THEN Waiting ELSE [reader[v] EXCEPT !.at = "ask", !.isLost = name \in lost])
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, cleaner, damages, stops, proc>>

\* It is gone: it expired, or it is lost.
Tell(v) ==
    LET known == IF Has("records are read again before something counts as lost") THEN recorded ELSE reader[v].held
        isExcused == Takes(reader[v].file, reader[v].generation, known) IN
    /\ reader[v].at = "ask"
    /\ SetV(v, CASE isExcused /\ ~IsTaken(reader[v].file, reader[v].generation, recorded)
                    -> [reader[v] EXCEPT !.at = "excused wrongly"]
                 [] ~isExcused /\ ~reader[v].isLost -> [reader[v] EXCEPT !.at = "lost wrongly"]
                 [] OTHER -> Waiting)
    /\ UNCHANGED <<life, work, staged, line, output, log, sent, cleaner, damages, stops, proc>>

-----------------------------------------------------------------------------
Progress(p) ==
    \/ Receive(p) \/ Recover(p) \/ ReadState(p) \/ FindVerified(p) \/ Refuse(p) \/ Attempt(p) \/ Inspect(p) \/ Convert(p)
    \/ Verify(p) \/ Fail(p) \/ Keep(p) \/ Scan(p) \/ Ask(p) \/ Stage(p) \/ UnstageEarlier(p) \/ Choose(p) \/ Open(p)
    \/ Check(p) \/ FindIntact(p) \/ ListMarkers(p) \/ Forget(p) \/ Decide(p) \/ Discard(p) \/ Follow(p) \/ MakeWay(p)
    \/ RemoveNames(p) \/ PublishOne(p) \/ FindStagingGone(p) \/ Bury(p) \/ Finish(p) \/ Unstage(p) \/ DeleteOrphans(p)
    \/ EndUnstaging(p) \/ Archive(p) \/ Remove(p) \/ Close(p) \/ Begin(p) \/ FindUnfinished(p) \/ Record(p) \/ ReadOpen(p)
    \/ ReadOutcome(p) \/ Delete(p) \/ EndRemoval(p)

Next ==
    \/ \E p \in Processes : Progress(p) \/ FindRemovable(p) \/ GiveUp(p) \/ Stop(p)
    \/ \E message \in sent : Land(message)
    \/ \E a \in Attempts : Sweep(a)
    \/ Damage \/ CleanerLists \/ CleanerJudges \/ CleanerDeletes \/ CleanerExpires
    \/ \E v \in Readers : Hold(v) \/ ReadCommit(v) \/ Look(v) \/ Tell(v)

Spec == Init /\ [][Next]_vars

FairSpec == Spec /\ \A p \in Processes : WF_vars(Progress(p))

-----------------------------------------------------------------------------
Holding(row) == {n \in Names : Row(visible[n]) = row}

TypesHold ==
    /\ number \in 0..MaxAttempts
    /\ done \subseteq Generations /\ marker \subseteq Generations \X (0..MaxAttempts)
    /\ begun \subseteq Generations /\ recorded \subseteq Generations
    /\ kept \subseteq Attempts

\* Readers never see a row twice.
AnEffectOnce == late \/ \A row \in {1, 2} : Cardinality(Holding(row)) <= 1

\* They see files of attempts that were verified and decided, under the names that were decided.
NothingVisibleUnverified ==
    \A n \in Names : visible[n] # NoFile =>
        /\ \E g \in Generations : decided[g].attempt = visible[n][1] /\ decided[g].names[visible[n][2]] = n
        /\ visible[n][1] \in kept
        /\ 1 \in done \/ Staged(visible[n][1]) = Files

IsThere(g, f) == IsPublished(g, f) /\ (f \in InPlace => f \in Staged(decided[g].attempt))

\* Done is whole, and stays so but for what a person lost or a rule took: what a table lists is there.
DoneIsWhole ==
    Latest > 0 /\ Latest \in done /\ IsCommit(Latest) /\ ~late =>
        \A f \in Files : IsThere(Latest, f) \/ decided[Latest].names[f] \in lost \/ IsTaken(f, Latest, recorded)

\* What is decided and not done is staged, or visible already: nothing removed what is reachable.
NothingIsLost ==
    Latest > 0 /\ Latest \notin done /\ IsCommit(Latest) /\ ~late =>
        \A f \in Files : f \in Staged(decided[Latest].attempt) \/ (IsPublished(Latest, f) /\ f \notin InPlace)

\* Until it is done, a driver finds it again, also if its rebuild dies.
NothingForgotten ==
    /\ accepted /\ done = {} => delivered \/ marker # {}
    /\ Latest > 1 /\ Latest \notin done => \E m \in marker : m[1] = Latest

\* The manifest itself is kept until it is committed and done; a dead letter is kept for good.
OriginalIsKept ==
    /\ delivered \/ original # "none"
    /\ original = "expired" => Latest > 0 /\ IsCommit(Latest) /\ Latest \in done

\* No reader says that something is lost which expired, and none that something expired which no rule took.
EachIsToldApart == \A v \in Readers : reader[v].at \notin {"lost wrongly", "excused wrongly"}

\* What expired is gone when no intention is left, after any death, and nothing brings it back.
NothingComesBack ==
    \A g \in recorded :
        (/\ g \notin begun /\ sent = {} /\ Latest = g
         /\ \A p \in Expirers : At(p, "idle") \/ proc[p].generation # g)
        => \A f \in Taking : visible[decided[g].names[f]] = NoFile

ChangesStay ==
    [][/\ \A g \in Generations : IsDecided(g) => decided'[g] = decided[g]
       /\ recorded \subseteq recorded']_vars

\* Each change gets done, and leaves nothing open behind; what expired goes; lost rows are made again, unless they expired.
EachIsDone ==
    /\ <>[](Latest > 0 /\ Latest \in done /\ ~delivered)
    /\ Rebuilders = {} => <>[](marker = {})
    /\ \A g \in Generations : g \in recorded ~> g \notin begun
    /\ 2 \in lost ~> (2 \notin lost \/ IsTaken(2, 1, recorded) \/ Latest = 2 \/ number = MaxAttempts)
=============================================================================
