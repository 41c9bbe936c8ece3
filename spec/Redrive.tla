------------------------------ MODULE Redrive ------------------------------
(* How what a done manifest left goes into new manifests: the files of a dead letter, quarantined files, or rejected   *)
(* lines. The redrives of a lineage are numbered. A planner may take over the claims of a redrive that was held up.    *)
EXTENDS Naturals, FiniteSets

CONSTANTS Things,   \* files, or lines
          Kind,     \* "files", which are claimed, or "lines", which are written to new files
          Redrivers,
          MaxNumber,
          MaxStops,
          PausesOutliveLeases,
          Guards

Numbers == 1..MaxNumber
Source == 0              \* the manifest that is redriven
Planned == MaxNumber + 1 \* a manifest of the planner
NoRecord == [by |-> "nobody", things |-> {}]
Unbound == "unbound"
Bound == "bound"
Revoked == "revoked"
Has(guard) == guard \in Guards

VARIABLES
    claim,   \* which manifest holds each file
    record,  \* the record of each redrive, with its manifest
    there,   \* the redrives whose manifests are in the watched prefix
    fate,    \* the record of each redrive's id
    planned, \* the files that the planner has in a manifest of its own
    lines,   \* the folders of written lines, each by the number of the redrive and the redriver
    done,    \* the redrives whose manifests are committed and done
    stops,
    proc     \* each redriver: its step, the redrives that it knows, what it redrives, and its number

vars == <<claim, record, there, fate, planned, lines, done, stops, proc>>

Idle == [at |-> "idle", known |-> {}, things |-> {}, number |-> 0]

Init ==
    /\ claim = [t \in Things |-> Source]
    /\ record = [n \in Numbers |-> NoRecord]
    /\ there = {}
    /\ fate = [n \in Numbers |-> Unbound]
    /\ planned = {}
    /\ lines = {}
    /\ done = {}
    /\ stops = 0
    /\ proc = [r \in Redrivers |-> Idle]

At(r, step) == proc[r].at = step
Set(r, changed) == proc' = [proc EXCEPT ![r] = changed]
Recorded == {n \in Numbers : record[n] # NoRecord}
Newest(known) == IF known = {} THEN 0 ELSE CHOOSE n \in known : \A m \in known : m <= n
InEffect(n) == record[n] # NoRecord /\ fate[n] # Revoked
Taken == UNION {record[n].things : n \in {each \in Numbers : InEffect(each)}}

\* The records of all redrives of the lineage, and what became of their manifests.
ReadLog(r) ==
    /\ At(r, "idle")
    /\ Things \ Taken # {}
    /\ Set(r, [Idle EXCEPT !.at = "choose", !.known = Recorded, !.things = Things \ Taken])
    /\ UNCHANGED <<claim, record, there, fate, planned, lines, done, stops>>

\* A redrive is on record, and its manifest was never written.
Heal(r) ==
    /\ At(r, "idle")
    /\ \E n \in Recorded :
        /\ fate[n] = Unbound
        /\ n \notin there
        /\ there' = there \union {n}
    /\ UNCHANGED <<claim, record, fate, planned, lines, done, stops, proc>>

\* The next number whose id is not used. If a number was skipped, a faster redrive may have used it.
ChooseNumber(r) ==
    LET newest == Newest(proc[r].known)
        free == {n \in Numbers : n > newest /\ fate[n] = Unbound} IN
    /\ At(r, "choose")
    /\ free # {}
    /\ LET n == CHOOSE each \in free : \A other \in free : each <= other IN
        IF n > newest + 1 /\ Recorded # proc[r].known /\ Has("the log is read again after a number is skipped")
        THEN Set(r, Idle)
        ELSE Set(r, [proc[r] EXCEPT !.at = IF Kind = "files" THEN "claim" ELSE "write lines", !.number = n])
    /\ UNCHANGED <<claim, record, there, fate, planned, lines, done, stops>>

\* Files that are held by the source, or by an earlier redrive of the lineage.
MayClaim(t, n) ==
    /\ claim[t] # Planned \/ ~Has("files of other manifests are left to them")
    /\ claim[t] <= n \/ claim[t] = Planned \/ ~Has("files of a later redrive are left to it")

Claim(r) ==
    LET mine == {t \in proc[r].things : MayClaim(t, proc[r].number)} IN
    /\ At(r, "claim")
    /\ claim' = [t \in Things |-> IF t \in mine THEN proc[r].number ELSE claim[t]]
    /\ Set(r, IF mine = {} THEN Idle ELSE [proc[r] EXCEPT !.at = "record", !.things = mine])
    /\ UNCHANGED <<record, there, fate, planned, lines, done, stops>>

WriteLines(r) ==
    /\ At(r, "write lines")
    /\ lines' = lines \union {<<proc[r].number, r>>}
    /\ Set(r, [proc[r] EXCEPT !.at = "record"])
    /\ UNCHANGED <<claim, record, there, fate, planned, done, stops>>

\* The record is create-only, and holds the manifest: from here on, the redrive takes effect.
Record(r) ==
    LET n == proc[r].number IN
    /\ At(r, "record")
    /\ IF record[n] = NoRecord \/ ~Has("the record of a redrive is create-only")
       THEN /\ record' = [record EXCEPT ![n] = [by |-> r, things |-> proc[r].things]]
            /\ Set(r, [proc[r] EXCEPT !.at = "deliver"])
       ELSE /\ UNCHANGED record
            /\ Set(r, IF Kind = "files" THEN Idle ELSE [proc[r] EXCEPT !.at = "delete lines"])
    /\ UNCHANGED <<claim, there, fate, planned, lines, done, stops>>

\* Another redrive took the number: these lines are in no manifest.
DeleteLines(r) ==
    LET n == proc[r].number IN
    /\ At(r, "delete lines")
    /\ lines' = IF Has("each redrive writes lines to its own folder") THEN lines \ {<<n, r>>}
                ELSE {each \in lines : each[1] # n}
    /\ Set(r, Idle)
    /\ UNCHANGED <<claim, record, there, fate, planned, done, stops>>

Deliver(r) ==
    /\ At(r, "deliver")
    /\ there' = there \union {proc[r].number}
    /\ Set(r, Idle)
    /\ UNCHANGED <<claim, record, fate, planned, lines, done, stops>>

\* The redriver dies, or gives up because an answer was lost. What it has written stays.
Stop(r) ==
    /\ ~At(r, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ Set(r, Idle)
    /\ UNCHANGED <<claim, record, there, fate, planned, lines, done>>

-----------------------------------------------------------------------------
MayHaveExpired(n) == PausesOutliveLeases \/ \A r \in Redrivers : proc[r].number # n

\* The planner meets a claim of a redrive whose manifest it did not find. It looks and revokes one after the other.
PlannerRevokes(n) ==
    /\ \E t \in Things : claim[t] = n
    /\ fate[n] = Unbound
    /\ MayHaveExpired(n)
    /\ Has("the planner revokes before it takes over")
    /\ fate' = [fate EXCEPT ![n] = Revoked]
    /\ UNCHANGED <<claim, record, there, planned, lines, done, stops, proc>>

\* Then it takes the file over, and plans it.
PlannerTakes(t) ==
    /\ claim[t] \in Numbers
    /\ \/ fate[claim[t]] = Revoked
       \/ /\ ~Has("the planner revokes before it takes over")
          /\ fate[claim[t]] = Unbound /\ claim[t] \notin there /\ MayHaveExpired(claim[t])
    /\ claim' = [claim EXCEPT ![t] = Planned]
    /\ planned' = planned \union {t}
    /\ UNCHANGED <<record, there, fate, lines, done, stops, proc>>

\* The job binds the id, and takes the manifest in.
Accept(n) ==
    /\ n \in there
    /\ fate[n] = Unbound \/ (fate[n] = Revoked /\ ~Has("a revoked redrive is refused"))
    /\ fate' = [fate EXCEPT ![n] = Bound]
    /\ UNCHANGED <<claim, record, there, planned, lines, done, stops, proc>>

Refuse(n) ==
    /\ n \in there
    /\ fate[n] = Revoked
    /\ there' = there \ {n}
    /\ UNCHANGED <<claim, record, fate, planned, lines, done, stops, proc>>

Finish(n) ==
    /\ n \in there
    /\ fate[n] = Bound
    /\ done' = done \union {n}
    /\ there' = there \ {n}
    /\ UNCHANGED <<claim, record, fate, planned, lines, stops, proc>>

\* The cleaner deletes old lines, by the number of their redrive.
CleanerExpiresLines(n) ==
    /\ n \in done \/ ~Has("the cleaner spares lines that are not committed and done")
    /\ \E each \in lines : each[1] = n
    /\ lines' = {each \in lines : each[1] # n}
    /\ UNCHANGED <<claim, record, there, fate, planned, done, stops, proc>>

Progress(r) ==
    \/ ReadLog(r) \/ Heal(r) \/ ChooseNumber(r) \/ Claim(r) \/ WriteLines(r) \/ Record(r) \/ DeleteLines(r) \/ Deliver(r)

Next ==
    \/ \E r \in Redrivers : Progress(r) \/ Stop(r)
    \/ \E n \in Numbers : PlannerRevokes(n) \/ Accept(n) \/ Refuse(n) \/ Finish(n) \/ CleanerExpiresLines(n)
    \/ \E t \in Things : PlannerTakes(t)

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec
    /\ \A r \in Redrivers : WF_vars(Progress(r)) /\ WF_vars(Heal(r))
    /\ \A n \in Numbers : WF_vars(Accept(n)) /\ WF_vars(Finish(n))
    /\ \A t \in Things : WF_vars(PlannerTakes(t))

-----------------------------------------------------------------------------
Effects(t) == {n \in Numbers : fate[n] = Bound /\ t \in record[n].things} \union (IF t \in planned THEN {Planned} ELSE {})

TypesHold ==
    /\ claim \in [Things -> 0..Planned]
    /\ there \subseteq Numbers /\ done \subseteq Numbers
    /\ fate \in [Numbers -> {Unbound, Bound, Revoked}]

\* Nothing that is redriven becomes rows twice.
AnEffectOnce == \A t \in Things : Cardinality(Effects(t)) <= 1

\* The record of a redrive never changes.
RecordsStay == [][\A n \in Numbers : record[n] # NoRecord => record'[n] = record[n]]_vars

\* The lines of a redrive that takes effect are there until it is committed and done.
LinesAreKept ==
    Kind = "lines" => \A n \in Numbers : InEffect(n) /\ n \notin done => <<n, record[n].by>> \in lines

\* What the planner took over is in a manifest of its own, or in no other.
NothingForgotten == \A t \in Things : claim[t] = Planned => t \in planned

\* What is redriven becomes rows in the end, as long as there are numbers to try.
EachArrives == \A t \in Things : <>(Effects(t) # {} \/ fate[MaxNumber] = Revoked \/ record[MaxNumber] # NoRecord)
=============================================================================
