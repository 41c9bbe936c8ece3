------------------------------ MODULE Rebuild ------------------------------
(* How the rows of a committed manifest are made again, under a commit of the next generation. It begins when the      *)
(* first generation is done and some of its files are lost, while a driver may still publish that generation.          *)
(* The manifest has two rows, and each attempt lays them into its two files in one order or the other.                 *)
EXTENDS Integers, FiniteSets

CONSTANTS Rebuilders,
          Drivers,        \* of the job
          MaxAttempts,    \* the first one included
          MaxGenerations,
          MaxStops,
          LateCopies,     \* whether a copy may take effect after its driver is gone
          Tidying,        \* whether rebuilders give up at their markers, and clear up after others
          Guards

Processes == Rebuilders \union Drivers
Attempts == 1..MaxAttempts
Generations == 1..MaxGenerations
Names == 1..(2 * MaxGenerations)
Files == {1, 2}
NoFile == <<0, 0>>
NoCommit == [attempt |-> 0, names |-> <<0, 0>>, first |-> 1, removes |-> {}]
Has(guard) == guard \in Guards

VARIABLES
    number,     \* how many attempts are on record
    generation, \* of each attempt
    swapped,    \* the attempts whose first file has the second row
    staged,     \* the files in the staging of each attempt
    outcome,    \* the commit of each generation
    visible,    \* the file under each final name: its attempt and its number there
    done,       \* the generations that are done
    marker,     \* the open markers, each with its generation and its attempt
    sent,       \* deletes and copies that may still take effect
    late,       \* whether a copy of an earlier generation took effect after the next one was decided
    cleaner, stops, proc

vars == <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops, proc>>

Idle == [at |-> "idle", work |-> 0, generation |-> 0, made |-> NoCommit, next |-> 1, rest |-> 2,
         listed |-> {}]

Init ==
    /\ number = 1
    /\ generation = [a \in Attempts |-> 1]
    /\ swapped = {}
    /\ staged = [a \in Attempts |-> IF a = 1 THEN Files ELSE {}]
    /\ outcome = [g \in Generations |->
                    IF g = 1 THEN [attempt |-> 1, names |-> <<1, 2>>, first |-> 1, removes |-> {}] ELSE NoCommit]
    /\ \E lost \in SUBSET Files \ {{}} :
        visible = [n \in Names |-> IF n \in Files \ lost THEN <<1, n>> ELSE NoFile]
    /\ done = {1}
    /\ marker = {}
    /\ sent = {}
    /\ late = FALSE
    /\ cleaner = [at |-> "idle", listed |-> {}]
    /\ stops = 0
    /\ proc = [p \in Processes |->
                IF p \in Drivers THEN [Idle EXCEPT !.at = "publish", !.generation = 1] ELSE Idle]

At(p, step) == proc[p].at = step
Set(p, changed) == proc' = [proc EXCEPT ![p] = changed]
GoTo(p, step) == Set(p, [proc[p] EXCEPT !.at = step])

Row(file) == IF file = NoFile THEN 0 ELSE IF file[1] \in swapped THEN 3 - file[2] ELSE file[2]
Decided(g) == outcome[g] # NoCommit
Latest == CHOOSE g \in Generations : Decided(g) /\ \A h \in Generations : h > g => ~Decided(h)
IsPublished(g, f) == visible[outcome[g].names[f]] = <<outcome[g].attempt, f>>
Upto(g) == {a \in 1..number : generation[a] <= g}
Empty(attempts) == [a \in Attempts |-> IF a \in attempts THEN {} ELSE staged[a]]
RollForward(p, g) == [proc[p] EXCEPT !.generation = g, !.at = IF g = 1 THEN "publish" ELSE "make way",
                                     !.next = outcome[g].first, !.rest = 3 - outcome[g].first]

-----------------------------------------------------------------------------
\* A rebuilder finds lost files, or a rebuild that is decided and not done.
Scan(p) ==
    /\ p \in Rebuilders
    /\ At(p, "idle")
    /\ \/ /\ Latest \in done
          /\ Latest < MaxGenerations
          /\ \E f \in Files : ~IsPublished(Latest, f)
          /\ Set(p, [Idle EXCEPT !.at = "attempt", !.generation = Latest + 1])
       \/ /\ Latest \notin done
          /\ Set(p, RollForward(p, Latest))
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

Attempt(p) ==
    /\ At(p, "attempt")
    /\ number < MaxAttempts
    /\ number' = number + 1
    /\ generation' = [generation EXCEPT ![number + 1] = proc[p].generation]
    /\ Set(p, [proc[p] EXCEPT !.at = "stage", !.work = number + 1])
    /\ UNCHANGED <<swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

\* Staging adds up here; Commit has what comes of staging that does not.
Stage(p) ==
    /\ At(p, "stage")
    /\ staged' = [staged EXCEPT ![proc[p].work] = Files]
    /\ \E attempts \in {{}, {proc[p].work}} : swapped' = swapped \union attempts
    /\ GoTo(p, "choose")
    /\ UNCHANGED <<number, generation, outcome, visible, done, marker, sent, late, cleaner, stops>>

\* What a late driver could still publish goes, before names are compared.
UnstageEarlier(p) ==
    /\ At(p, "choose")
    /\ staged' = IF Has("earlier staging is deleted before names are chosen")
                 THEN Empty(Upto(proc[p].generation - 1)) ELSE staged
    /\ GoTo(p, "compare")
    /\ UNCHANGED <<number, generation, swapped, outcome, visible, done, marker, sent, late, cleaner, stops>>

\* What is there under the name whose file would be replaced by a staged one.
Old(base, f) == visible[outcome[base].names[f]]
HasOther(base, a, f) == Old(base, f) # NoFile /\ Row(Old(base, f)) # Row(<<a, f>>)

\* The commit of the next generation: its final names, the file that is published first, and the names given up.
Successor(base, a) ==
    LET previous == outcome[base]
        others == {f \in Files : HasOther(base, a, f)}
        givenUp == IF Cardinality(others) = 1 THEN {} ELSE others
        fresh(f) == 2 * base + f
        name(f) == IF f \in givenUp /\ Has("a given-up name is never used again") THEN fresh(f) ELSE previous.names[f]
        names == <<name(1), name(2)>>
        old == {previous.names[f] : f \in givenUp} \union previous.removes
    IN [attempt |-> a, names |-> names, removes |-> old,
        first |-> IF Cardinality(others) = 1 /\ Has("a single file with other rows is replaced first")
                  THEN CHOOSE f \in Files : f \in others ELSE 1]

\* The staged files are read and compared with those that are published.
Choose(p) ==
    /\ At(p, "compare")
    /\ IF staged[proc[p].work] = Files
       THEN Set(p, [proc[p] EXCEPT !.at = "open", !.made = Successor(proc[p].generation - 1, proc[p].work)])
       ELSE Set(p, Idle)
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

Marker(g, a) == <<g, IF Has("each attempt has a marker of its own") THEN a ELSE 0>>

Open(p) ==
    /\ At(p, "open")
    /\ marker' = marker \union {Marker(proc[p].generation, proc[p].work)}
    /\ GoTo(p, "decide")
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, sent, late, cleaner, stops>>

\* The rows expired meanwhile, or another trouble: it deletes what it staged, and its marker.
GiveUp(p) ==
    /\ Tidying
    /\ At(p, "decide")
    /\ marker' = marker \ {Marker(proc[p].generation, proc[p].work)}
    /\ staged' = Empty({proc[p].work})
    /\ Set(p, Idle)
    /\ UNCHANGED <<number, generation, swapped, outcome, visible, done, sent, late, cleaner, stops>>

\* The commit point. A rebuilder that comes second deletes what it staged, and publishes the winner's files.
Decide(p) ==
    LET g == proc[p].generation
        wins == ~Decided(g) \/ ~Has("the outcome of a generation is create-only") IN
    /\ At(p, "decide")
    /\ outcome' = IF wins THEN [outcome EXCEPT ![g] = proc[p].made] ELSE outcome
    /\ GoTo(p, IF wins THEN "decided" ELSE "lost")
    /\ UNCHANGED <<number, generation, swapped, staged, visible, done, marker, sent, late, cleaner, stops>>

Discard(p) ==
    /\ At(p, "lost")
    /\ staged' = Empty(IF Has("a loser deletes only its own staging") THEN {proc[p].work}
                       ELSE {a \in 1..number : generation[a] = proc[p].generation})
    /\ GoTo(p, "decided")
    /\ UNCHANGED <<number, generation, swapped, outcome, visible, done, marker, sent, late, cleaner, stops>>

Follow(p) ==
    /\ At(p, "decided")
    /\ Set(p, RollForward(p, Latest))
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

\* The job finds an open marker.
Recover(p) ==
    /\ p \in Drivers
    /\ At(p, "idle")
    /\ marker # {}
    /\ Set(p, IF Latest \in done THEN [Idle EXCEPT !.at = "unstage", !.generation = Latest] ELSE RollForward(p, Latest))
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

\* A rebuilder finds a manifest intact, or what is to be rebuilt expired: markers of the next generation may be left of
\* rebuilds that died. What has not decided for an hour is taken for dead, and is so here.
AboutToDecide(a) == \E p \in Rebuilders : proc[p].work = a /\ At(p, "decide")

FindIntact(p) ==
    /\ Tidying
    /\ p \in Rebuilders
    /\ At(p, "idle")
    /\ Latest \in done
    /\ Latest < MaxGenerations
    /\ Set(p, [Idle EXCEPT !.at = "list", !.generation = Latest])
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

ListMarkers(p) ==
    LET g == proc[p].generation
        isOver(m) == \/ ~\E a \in 1..number : Marker(m[1], a) = m /\ generation[a] = m[1] /\ AboutToDecide(a)
                     \/ ~Has("a marker whose rebuild may still decide stays")
        isLeft == ~Decided(g + 1) \/ ~Has("the outcome is read again before markers are forgotten")
    IN
    /\ At(p, "list")
    /\ Set(p, IF isLeft
              THEN [proc[p] EXCEPT !.at = "forget", !.listed = {m \in marker : m[1] = g + 1 /\ isOver(m)}] ELSE Idle)
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

Forget(p) ==
    /\ At(p, "forget")
    /\ marker' = marker \ proc[p].listed
    /\ Set(p, Idle)
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, sent, late, cleaner, stops>>

-----------------------------------------------------------------------------
\* The same once more, in the roll forward; then the names that are given up.
MakeWay(p) ==
    /\ At(p, "make way")
    /\ staged' = Empty(Upto(proc[p].generation - 1))
    /\ GoTo(p, "remove")
    /\ UNCHANGED <<number, generation, swapped, outcome, visible, done, marker, sent, late, cleaner, stops>>

RemoveNames(p) ==
    /\ At(p, "remove")
    /\ visible' = IF Has("given-up names are deleted before anything is published")
                  THEN [n \in Names |-> IF n \in outcome[proc[p].generation].removes THEN NoFile ELSE visible[n]]
                  ELSE visible
    /\ GoTo(p, "publish")
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, done, marker, sent, late, cleaner, stops>>

PublishOne(p) ==
    LET g == proc[p].generation f == proc[p].next IN
    /\ At(p, "publish")
    /\ f \in staged[outcome[g].attempt]
    /\ visible' = [visible EXCEPT ![outcome[g].names[f]] = <<outcome[g].attempt, f>>]
    /\ Set(p, [proc[p] EXCEPT !.at = IF proc[p].rest = 0 THEN "published" ELSE "publish", !.next = proc[p].rest,
                              !.rest = 0])
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, done, marker, sent, late, cleaner, stops>>

\* The staged file is gone: another driver is further, perhaps in a later generation, or somebody has to know.
FindStagingGone(p) ==
    LET g == proc[p].generation IN
    /\ At(p, "publish")
    /\ proc[p].next \notin staged[outcome[g].attempt]
    /\ Set(p, CASE Latest > g -> RollForward(p, Latest)
                [] g \in done -> [proc[p] EXCEPT !.at = "published"]
                [] OTHER -> Idle)
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, cleaner, stops>>

Finish(p) ==
    /\ At(p, "published")
    /\ done' = done \union {proc[p].generation}
    /\ GoTo(p, "unstage")
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, marker, sent, late, cleaner, stops>>

Unstage(p) ==
    /\ At(p, "unstage")
    /\ staged' = Empty(IF Has("clean-up spares later generations") THEN Upto(proc[p].generation) ELSE Attempts)
    /\ GoTo(p, "close")
    /\ UNCHANGED <<number, generation, swapped, outcome, visible, done, marker, sent, late, cleaner, stops>>

\* A marker of a later generation stays.
Close(p) ==
    /\ At(p, "close")
    /\ marker' = {m \in marker : m[1] > proc[p].generation}
    /\ Set(p, Idle)
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, sent, late, cleaner, stops>>

-----------------------------------------------------------------------------
\* The process dies, or gives up because an answer was lost. What it has sent may take effect at any later time.
InFlight(p) ==
    LET g == proc[p].generation IN
    CASE At(p, "choose") \/ At(p, "make way") -> {<<"unstage", a>> : a \in Upto(g - 1)}
      [] At(p, "unstage") -> {<<"unstage", a>> : a \in Upto(g)}
      [] At(p, "remove") -> {<<"remove", n>> : n \in outcome[g].removes}
      [] At(p, "publish") /\ LateCopies /\ proc[p].next \in staged[outcome[g].attempt] ->
            {<<"copy", g, proc[p].next>>}
      [] OTHER -> {}

Stop(p) ==
    /\ ~At(p, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ sent' = sent \union InFlight(p)
    /\ Set(p, Idle)
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, late, cleaner>>

Land(message) ==
    /\ message \in sent
    /\ sent' = sent \ {message}
    /\ CASE message[1] = "unstage" ->
                staged' = Empty({message[2]}) /\ UNCHANGED <<visible, late>>
         [] message[1] = "remove" ->
                visible' = [visible EXCEPT ![message[2]] = NoFile] /\ UNCHANGED <<staged, late>>
         [] message[1] = "copy" ->
                LET commit == outcome[message[2]] f == message[3] IN
                /\ visible' = [visible EXCEPT ![commit.names[f]] = <<commit.attempt, f>>]
                /\ late' = (late \/ Latest > message[2])
                /\ UNCHANGED staged
    /\ UNCHANGED <<number, generation, swapped, outcome, done, marker, cleaner, stops, proc>>

-----------------------------------------------------------------------------
\* The cleaner lists staging that is old; any staging may have become old.
CleanerLists ==
    /\ cleaner.at = "idle"
    /\ \E a \in Attempts : staged[a] # {}
    /\ cleaner' = [at |-> "judge", listed |-> {a \in Attempts : staged[a] # {}}]
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, stops, proc>>

CleanerJudges ==
    /\ cleaner.at = "judge"
    /\ cleaner' = IF \/ Latest \notin done
                     \/ /\ \E a \in cleaner.listed : generation[a] > Latest
                        /\ Has("the cleaner spares staging of a later generation")
                  THEN [at |-> "idle", listed |-> {}] ELSE [cleaner EXCEPT !.at = "delete"]
    /\ UNCHANGED <<number, generation, swapped, staged, outcome, visible, done, marker, sent, late, stops, proc>>

CleanerDeletes ==
    /\ cleaner.at = "delete"
    /\ staged' = Empty(cleaner.listed)
    /\ cleaner' = [at |-> "idle", listed |-> {}]
    /\ UNCHANGED <<number, generation, swapped, outcome, visible, done, marker, sent, late, stops, proc>>

Progress(p) ==
    \/ Scan(p) \/ Attempt(p) \/ Stage(p) \/ Choose(p) \/ Open(p) \/ Decide(p) \/ Discard(p) \/ Follow(p) \/ Recover(p)
    \/ FindIntact(p) \/ ListMarkers(p) \/ Forget(p)
    \/ UnstageEarlier(p) \/ MakeWay(p) \/ RemoveNames(p) \/ PublishOne(p) \/ FindStagingGone(p) \/ Finish(p) \/ Unstage(p) \/ Close(p)

Next ==
    \/ \E p \in Processes : Progress(p) \/ GiveUp(p) \/ Stop(p)
    \/ \E message \in sent : Land(message)
    \/ CleanerLists \/ CleanerJudges \/ CleanerDeletes

Spec == Init /\ [][Next]_vars

FairSpec == Spec /\ \A p \in Processes : WF_vars(Progress(p))

-----------------------------------------------------------------------------
Holding(row) == {n \in Names : Row(visible[n]) = row}

TypesHold ==
    /\ number \in Attempts
    /\ done \subseteq Generations /\ marker \subseteq (Generations \X (0..MaxAttempts))
    /\ Decided(1)

\* Readers never see a row twice.
AnEffectOnce == late \/ \A row \in {1, 2} : Cardinality(Holding(row)) <= 1

\* They see files of attempts that were decided, under the names that were decided.
NothingVisibleUnverified ==
    \A n \in Names : visible[n] # NoFile =>
        \E g \in Generations : outcome[g].attempt = visible[n][1] /\ outcome[g].names[visible[n][2]] = n

\* A rebuild that is done is whole.
DoneIsWhole ==
    Latest > 1 /\ Latest \in done /\ ~late => \A f \in Files : IsPublished(Latest, f)

\* What is decided and not done is staged, or visible already.
NothingIsLost ==
    Latest > 1 /\ Latest \notin done /\ ~late =>
        \A f \in Files : f \in staged[outcome[Latest].attempt] \/ IsPublished(Latest, f)

\* The job finds what is decided and not done, also if its rebuild dies.
NothingForgotten == Latest > 1 /\ Latest \notin done => \E m \in marker : m[1] = Latest

OutcomesStay == [][\A g \in Generations : Decided(g) => outcome'[g] = outcome[g]]_vars

\* A rebuild that is decided gets done.
ItEnds == \A g \in Generations : Decided(g) ~> \E h \in Generations : h >= g /\ h \in done
=============================================================================
