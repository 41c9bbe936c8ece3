------------------------------ MODULE Expiring ------------------------------
(* How files of a done manifest go under a rule: a process puts its intention and the record of what expires into the  *)
(* store, and deletes. Beside it a person loses rows, rebuilds make them again, a driver is late, and readers tell what *)
(* is lost from what expired. Rebuild has how a rebuild is published. Any process may stop at any step, or be held up.  *)
EXTENDS Integers, FiniteSets

CONSTANTS Kind,      \* of the rule: "retired" takes rows and rejects, "rejects" only these
          Expirers, Rebuilders, Readers,
          IsLate,    \* whether a driver is still at work on the manifest, which is done
          MaxDamages, MaxStops, Guards

Generations == {1, 2}
Names == {"rows", "rejects", "fresh"} \* the first commit has the first two; a rebuild may give its rejects a fresh one
Parts == IF Kind = "retired" THEN {"rows", "rejects"} ELSE {"rejects"}
Nothing == 0
Has(guard) == guard \in Guards

VARIABLES
    decided, done, \* the generation of the newest commit, and of the newest one that is done
    rejects,       \* the name of the rejects of the second generation
    at,            \* what is under each name: files of that generation
    late,          \* the late driver: "staged" while it may still publish, then "unstaged", "closed"
    open,          \* whether a rebuild has the manifest in the index of open manifests
    begun,         \* the generations of which an intention is in the store
    recorded,      \* those that a record takes
    sent,          \* deletes that may still take effect
    damaged,       \* whether a person lost the rows, and nothing made them again
    expirer, rebuild, reader, damages, stops

files == <<decided, done, rejects, at, late, open, damaged, damages>>
log == <<begun, recorded, sent>>
vars == <<files, log, expirer, rebuild, reader, stops>>

Resting == [at |-> "idle", generation |-> 1, opened |-> FALSE, seen |-> 1, names |-> {}]
Idle == [at |-> "idle", rejects |-> "rejects"]
Waiting == [at |-> "idle", held |-> {}, generation |-> 1, part |-> "rows", name |-> "rows", legit |-> FALSE]

Init ==
    /\ decided = 1 /\ done = 1
    /\ rejects = "rejects"
    /\ at = [n \in Names |-> IF n = "fresh" THEN Nothing ELSE 1]
    /\ late = IF IsLate THEN "staged" ELSE "closed"
    /\ open = FALSE
    /\ begun = {} /\ recorded = {} /\ sent = {}
    /\ damaged = FALSE
    /\ expirer = [e \in Expirers |-> Resting]
    /\ rebuild = [r \in Rebuilders |-> Idle]
    /\ reader = [v \in Readers |-> Waiting]
    /\ damages = 0
    /\ stops = 0

\* A manifest is open while a driver or a rebuild works on it.
InWork == open \/ late # "closed"

NameOf(part, g) == IF part = "rows" THEN "rows" ELSE IF g = 1 THEN "rejects" ELSE rejects
NamesOf(g) == {NameOf(part, g) : part \in Parts}
Cleared(names) == [n \in Names |-> IF n \in names THEN Nothing ELSE at[n]]

\* What a record takes is of its generation, or of an earlier one.
IsTaken(part, g, records) == part \in Parts /\ \E x \in records : g <= x
Takes(part, g, records) ==
    IF Has("a record takes nothing of a later generation") THEN IsTaken(part, g, records)
    ELSE part \in Parts /\ records # {}

-----------------------------------------------------------------------------
\* What may go is found: a date is retired when nothing of it is in work. Rejects go by their age.
SetE(e, changed) == expirer' = [expirer EXCEPT ![e] = changed]
GoE(e, step) == SetE(e, [expirer[e] EXCEPT !.at = step])

Scan(e) ==
    /\ expirer[e].at = "idle"
    /\ decided = done /\ decided \notin recorded
    /\ Kind = "retired" => ~InWork
    /\ SetE(e, [Resting EXCEPT !.generation = decided,
                !.at = IF Has("an intention is in the store before anything expires") THEN "begin" ELSE "record"])
    /\ UNCHANGED <<files, log, rebuild, reader, stops>>

Begin(e) ==
    /\ expirer[e].at = "begin"
    /\ begun' = begun \union {expirer[e].generation}
    /\ GoE(e, "record")
    /\ UNCHANGED <<files, recorded, sent, rebuild, reader, stops>>

\* Any later run finds what was begun and not finished.
FindUnfinished(e) ==
    /\ expirer[e].at = "idle"
    /\ \E g \in begun : SetE(e, [Resting EXCEPT !.at = "record", !.generation = g])
    /\ UNCHANGED <<files, log, rebuild, reader, stops>>

Record(e) ==
    /\ expirer[e].at = "record"
    /\ recorded' = IF Has("what expires is on record before it is deleted")
                   THEN recorded \union {expirer[e].generation} ELSE recorded
    /\ GoE(e, "first")
    /\ UNCHANGED <<files, begun, sent, rebuild, reader, stops>>

OpenFirst == Has("open manifests are read before their outcomes")

ReadOpen(e) ==
    /\ expirer[e].at = IF OpenFirst THEN "first" ELSE "second"
    /\ SetE(e, [expirer[e] EXCEPT !.opened = InWork, !.at = IF OpenFirst THEN "second" ELSE "delete"])
    /\ UNCHANGED <<files, log, rebuild, reader, stops>>

ReadOutcome(e) ==
    /\ expirer[e].at = IF OpenFirst THEN "second" ELSE "first"
    /\ SetE(e, [expirer[e] EXCEPT !.seen = decided, !.names = NamesOf(decided),
                !.at = IF OpenFirst THEN "delete" ELSE "second"])
    /\ UNCHANGED <<files, log, rebuild, reader, stops>>

IsSame(e) == expirer[e].seen = expirer[e].generation \/ ~Has("only the generation on record goes")
Waits(e) == IsSame(e) /\ expirer[e].opened /\ Has("what is open is left to a later run")
Doomed(e) == IF IsSame(e) /\ ~Waits(e) THEN expirer[e].names ELSE {}

Delete(e) ==
    /\ expirer[e].at = "delete"
    /\ at' = Cleared(Doomed(e))
    /\ recorded' = recorded \union {expirer[e].generation}
    /\ GoE(e, IF Waits(e) /\ Has("an intention stays while something waits") THEN "idle" ELSE "finish")
    /\ UNCHANGED <<decided, done, rejects, late, open, damaged, damages, begun, sent, rebuild, reader, stops>>

\* The delete is sent, and the process stops. It takes effect at any later time.
DeleteLate(e) ==
    /\ expirer[e].at = "delete"
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ sent' = sent \union Doomed(e)
    /\ SetE(e, Resting)
    /\ UNCHANGED <<files, begun, recorded, rebuild, reader>>

Land(n) ==
    /\ n \in sent
    /\ sent' = sent \ {n}
    /\ at' = Cleared({n})
    /\ UNCHANGED <<decided, done, rejects, late, open, damaged, damages, begun, recorded, expirer, rebuild, reader, stops>>

Finish(e) ==
    /\ expirer[e].at = "finish"
    /\ begun' = begun \ {expirer[e].generation}
    /\ SetE(e, Resting)
    /\ UNCHANGED <<files, recorded, sent, rebuild, reader, stops>>

StopExpirer(e) ==
    /\ expirer[e].at # "idle"
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ SetE(e, Resting)
    /\ UNCHANGED <<files, log, rebuild, reader>>

-----------------------------------------------------------------------------
\* The driver that is late: it may publish again what is staged.
CopyLate(n) ==
    /\ late = "staged" /\ n # "fresh" /\ done = 1
    /\ at' = [at EXCEPT ![n] = 1]
    /\ UNCHANGED <<decided, done, rejects, late, open, damaged, damages, log, expirer, rebuild, reader, stops>>

CloseLate ==
    /\ late # "closed"
    /\ late' = IF late = "staged" THEN "unstaged" ELSE "closed"
    /\ UNCHANGED <<decided, done, rejects, at, open, damaged, damages, log, expirer, rebuild, reader, stops>>

\* A person deletes rows.
Damage ==
    /\ damages < MaxDamages
    /\ at["rows"] # Nothing
    /\ damages' = damages + 1
    /\ damaged' = TRUE
    /\ at' = Cleared({"rows"})
    /\ UNCHANGED <<decided, done, rejects, late, open, log, expirer, rebuild, reader, stops>>

-----------------------------------------------------------------------------
SetR(r, changed) == rebuild' = [rebuild EXCEPT ![r] = changed]
GoR(r, step) == SetR(r, [rebuild[r] EXCEPT !.at = step])
AskFirst == ~Has("a rebuild opens its manifest before it asks again")

\* Rows are gone.
FindGone(r) ==
    /\ rebuild[r].at = "idle"
    /\ decided = 1 /\ at["rows"] = Nothing
    /\ GoR(r, "ask")
    /\ UNCHANGED <<files, log, expirer, reader, stops>>

\* They may have expired: what another rebuild left open is forgotten then.
Ask(r) ==
    /\ rebuild[r].at = "ask"
    /\ IF Takes("rows", 1, recorded)
       THEN /\ open' = (open /\ (decided = 2 \/ ~Has("what a dead rebuild left open is forgotten when its rows expired")))
            /\ SetR(r, Idle)
       ELSE UNCHANGED open /\ GoR(r, "choose")
    /\ UNCHANGED <<decided, done, rejects, at, late, damaged, damages, log, expirer, reader, stops>>

\* All is staged again, and nothing of the first commit any more. The names are chosen.
Choose(r) ==
    /\ rebuild[r].at = "choose"
    /\ late' = IF late = "staged" THEN "unstaged" ELSE late
    /\ SetR(r, [rebuild[r] EXCEPT !.at = IF AskFirst THEN "check" ELSE "open",
        !.rejects = IF Takes("rejects", 1, recorded) /\ Has("a name of expired rejects is never used again")
                    THEN "fresh" ELSE "rejects"])
    /\ UNCHANGED <<decided, done, rejects, at, open, damaged, damages, log, expirer, reader, stops>>

Open(r) ==
    /\ rebuild[r].at = "open"
    /\ open' = TRUE
    /\ GoR(r, IF AskFirst THEN "decide" ELSE "check")
    /\ UNCHANGED <<decided, done, rejects, at, late, damaged, damages, log, expirer, reader, stops>>

Check(r) ==
    LET isTaken == \/ Takes("rows", 1, recorded)
                   \/ rebuild[r].rejects = "rejects" /\ Takes("rejects", 1, recorded)
        givesUp == isTaken /\ Has("a rebuild gives up if its files expired meanwhile") IN
    /\ rebuild[r].at = "check"
    /\ open' = (open /\ ~(givesUp /\ decided = 1))
    /\ IF givesUp THEN SetR(r, Idle) ELSE GoR(r, IF AskFirst THEN "open" ELSE "decide")
    /\ UNCHANGED <<decided, done, rejects, at, late, damaged, damages, log, expirer, reader, stops>>

Decide(r) ==
    /\ rebuild[r].at = "decide"
    /\ decided' = 2
    /\ rejects' = IF decided = 1 THEN rebuild[r].rejects ELSE rejects
    /\ GoR(r, "publish")
    /\ UNCHANGED <<done, at, late, open, damaged, damages, log, expirer, reader, stops>>

\* What it does not replace is deleted first.
Publish(r) ==
    /\ rebuild[r].at = "publish"
    /\ IF done = 2 THEN UNCHANGED <<at, damaged>>
       ELSE /\ at' = [n \in Names |-> IF n \in {"rows", rejects} THEN 2 ELSE Nothing]
            /\ damaged' = FALSE
    /\ done' = 2
    /\ GoR(r, "close")
    /\ UNCHANGED <<decided, rejects, late, open, damages, log, expirer, reader, stops>>

Close(r) ==
    /\ rebuild[r].at = "close"
    /\ open' = FALSE
    /\ SetR(r, Idle)
    /\ UNCHANGED <<decided, done, rejects, at, late, damaged, damages, log, expirer, reader, stops>>

\* The job, or the next rebuild, finishes what was decided.
Recover(r) ==
    /\ rebuild[r].at = "idle"
    /\ decided = 2 /\ open
    /\ GoR(r, "publish")
    /\ UNCHANGED <<files, log, expirer, reader, stops>>

StopRebuild(r) ==
    /\ rebuild[r].at # "idle"
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ SetR(r, Idle)
    /\ UNCHANGED <<files, log, expirer, reader>>

-----------------------------------------------------------------------------
SetV(v, changed) == reader' = [reader EXCEPT ![v] = changed]

\* Records that a reader has read for something else of the date.
Hold(v) ==
    /\ reader[v].at = "idle"
    /\ SetV(v, [Waiting EXCEPT !.at = "read", !.held = recorded])
    /\ UNCHANGED <<files, log, expirer, rebuild, stops>>

\* A manifest that is done, and one of its files.
ReadCommit(v) ==
    /\ reader[v].at = "read"
    /\ decided = done
    /\ \E part \in {"rows", "rejects"} :
        SetV(v, [reader[v] EXCEPT !.at = "look", !.generation = done, !.part = part, !.name = NameOf(part, done)])
    /\ UNCHANGED <<files, log, expirer, rebuild, stops>>

Look(v) ==
    /\ reader[v].at = "look"
    /\ SetV(v, IF at[reader[v].name] # Nothing THEN Waiting
               ELSE [reader[v] EXCEPT !.at = "ask", !.legit = damaged /\ @ = FALSE /\ reader[v].part = "rows"])
    /\ UNCHANGED <<files, log, expirer, rebuild, stops>>

\* It is gone: it expired, or it is lost.
Tell(v) ==
    LET known == IF Has("records are read again before something counts as lost") THEN recorded ELSE reader[v].held
        isExcused == Takes(reader[v].part, reader[v].generation, known) IN
    /\ reader[v].at = "ask"
    /\ SetV(v, CASE isExcused /\ ~IsTaken(reader[v].part, reader[v].generation, recorded)
                    -> [reader[v] EXCEPT !.at = "excused wrongly"]
                 [] ~isExcused /\ ~reader[v].legit -> [reader[v] EXCEPT !.at = "lost wrongly"]
                 [] OTHER -> Waiting)
    /\ UNCHANGED <<files, log, expirer, rebuild, stops>>

-----------------------------------------------------------------------------
Next ==
    \/ \E e \in Expirers :
        \/ Scan(e) \/ Begin(e) \/ FindUnfinished(e) \/ Record(e) \/ ReadOpen(e) \/ ReadOutcome(e) \/ Delete(e)
        \/ DeleteLate(e) \/ Finish(e) \/ StopExpirer(e)
    \/ \E n \in Names : Land(n) \/ CopyLate(n)
    \/ CloseLate \/ Damage
    \/ \E r \in Rebuilders :
        \/ FindGone(r) \/ Ask(r) \/ Choose(r) \/ Open(r) \/ Check(r) \/ Decide(r) \/ Publish(r) \/ Close(r)
        \/ Recover(r) \/ StopRebuild(r)
    \/ \E v \in Readers : Hold(v) \/ ReadCommit(v) \/ Look(v) \/ Tell(v)

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec
    /\ WF_vars(CloseLate)
    /\ \A n \in Names : WF_vars(Land(n))
    /\ \A e \in Expirers :
        /\ WF_vars(Begin(e)) /\ WF_vars(FindUnfinished(e)) /\ WF_vars(Record(e)) /\ WF_vars(ReadOpen(e))
        /\ WF_vars(ReadOutcome(e)) /\ WF_vars(Delete(e)) /\ WF_vars(Finish(e))
    /\ \A r \in Rebuilders :
        /\ WF_vars(FindGone(r)) /\ WF_vars(Ask(r)) /\ WF_vars(Choose(r)) /\ WF_vars(Open(r)) /\ WF_vars(Check(r))
        /\ WF_vars(Decide(r)) /\ WF_vars(Publish(r)) /\ WF_vars(Close(r)) /\ WF_vars(Recover(r))

-----------------------------------------------------------------------------
TypesHold ==
    /\ begun \subseteq Generations /\ recorded \subseteq Generations
    /\ sent \subseteq Names /\ done <= decided

\* What a commit that is done names is there, or expired, or a person lost it. Nothing else removes it.
NothingIsLost ==
    decided = done =>
        \A part \in {"rows", "rejects"} :
            at[NameOf(part, done)] # Nothing \/ IsTaken(part, done, recorded) \/ (damaged /\ part = "rows")

\* No reader says that something is lost which expired, and none that something expired which no rule took.
EachIsToldApart == \A v \in Readers : reader[v].at \notin {"lost wrongly", "excused wrongly"}

\* What expired is gone when no intention is left, after any death, and nothing brings it back.
NothingComesBack ==
    \A g \in recorded :
        (/\ g \notin begun /\ sent = {}
         /\ \A e \in Expirers : expirer[e].at = "idle" \/ expirer[e].generation # g
         /\ decided = g)
        => \A n \in NamesOf(g) : at[n] = Nothing

\* No file is there twice, under two names.
AnEffectOnce == decided = done => at["rejects"] = Nothing \/ at["fresh"] = Nothing

\* A record stays.
RecordsStay == [][recorded \subseteq recorded']_vars

\* What expired goes in the end, and rows that a person lost are made again, unless they expired.
EachGoes == \A g \in Generations : g \in recorded ~> g \notin begun
EachIsRebuilt == damaged ~> (~damaged \/ IsTaken("rows", 1, recorded) \/ decided = 2)
EachEnds == EachGoes /\ EachIsRebuilt
=============================================================================
