------------------------------ MODULE Sealing ------------------------------
(* How pending parts come into manifests. A part is a manifest of few files that waits; its id is bound or revoked as  *)
(* any id (Claims). Sealers claim parts for manifests as builders claim files, and may stop or be held up at any step. *)
EXTENDS Naturals, FiniteSets

CONSTANTS Parts, Sealers, MaxIds, MaxStops, PausesOutliveLeases, Guards

Ids == 1..MaxIds
Nobody == 0
Unbound == "unbound"
Bound == "bound"
Revoked == "revoked"
Has(guard) == guard \in Guards

VARIABLES
    begun,    \* the parts that were written at some time
    there,    \* the parts in the pending folder
    partFate, \* the record of each part's id
    claim,    \* the id that holds each part
    fate,     \* the record of each manifest's id
    written, members, accepted, used, stops,
    proc      \* each sealer: its step, its id, parts to bind and claim, won, to delete, and the part and holder it met

vars == <<begun, there, partFate, claim, fate, written, members, accepted, used, stops, proc>>
partVars == <<begun, there, partFate>>
manifestVars == <<fate, written, members, accepted>>

Idle == [at |-> "idle", id |-> Nobody, todo |-> {}, bound |-> {}, mine |-> {}, gone |-> {}, part |-> Nobody,
         holder |-> Nobody]

Init ==
    /\ begun = {}
    /\ there = {}
    /\ partFate = [p \in Parts |-> Unbound]
    /\ claim = [p \in Parts |-> Nobody]
    /\ fate = [i \in Ids |-> Unbound]
    /\ written = {}
    /\ members = [i \in Ids |-> {}]
    /\ accepted = {}
    /\ used = 0
    /\ stops = 0
    /\ proc = [s \in Sealers |-> Idle]

At(s, step) == proc[s].at = step
Set(s, changed) == proc' = [proc EXCEPT ![s] = changed]
RecordedPart(p, wish) ==
    IF partFate[p] = Unbound \/ ~Has("one record binds or revokes a part") THEN wish ELSE partFate[p]
Recorded(i, wish) == IF fate[i] = Unbound THEN wish ELSE fate[i]
MayHaveExpired(i) == PausesOutliveLeases \/ \A s \in Sealers : proc[s].id # i

\* Builders write parts, and bind or discard them; claimants of their files may revoke them before.
WritePart(p) ==
    /\ p \notin begun
    /\ begun' = begun \union {p}
    /\ there' = there \union {p}
    /\ UNCHANGED <<partFate, claim, manifestVars, used, stops, proc>>

BuilderBinds(p) ==
    /\ p \in begun
    /\ partFate[p] = Unbound
    /\ partFate' = [partFate EXCEPT ![p] = Bound]
    /\ UNCHANGED <<begun, there, claim, manifestVars, used, stops, proc>>

ClaimantRevokes(p) ==
    /\ partFate' = [partFate EXCEPT ![p] = RecordedPart(p, Revoked)]
    /\ partFate[p] = Unbound \/ ~Has("one record binds or revokes a part")
    /\ UNCHANGED <<begun, there, claim, manifestVars, used, stops, proc>>

BuilderDiscards(p) ==
    /\ p \in there
    /\ partFate[p] = Revoked
    /\ there' = there \ {p}
    /\ UNCHANGED <<begun, partFate, claim, manifestVars, used, stops, proc>>

-----------------------------------------------------------------------------
Begin(s) ==
    /\ At(s, "idle")
    /\ used < MaxIds
    /\ there # {}
    /\ used' = used + 1
    /\ \E group \in SUBSET there \ {{}} :
        Set(s, [Idle EXCEPT !.at = "bind parts", !.id = used + 1, !.todo = group])
    /\ UNCHANGED <<partVars, claim, manifestVars, stops>>

BindPart(s) ==
    /\ At(s, "bind parts")
    /\ \E p \in proc[s].todo :
        LET left == proc[s].todo \ {p}
            changed == [proc[s] EXCEPT !.todo = left] IN
        /\ partFate' = IF Has("a part is bound before it is sealed")
                       THEN [partFate EXCEPT ![p] = RecordedPart(p, Bound)] ELSE partFate
        /\ Set(s, IF partFate'[p] = Revoked THEN [changed EXCEPT !.gone = @ \union {p}]
                  ELSE [changed EXCEPT !.bound = @ \union {p}])
    /\ UNCHANGED <<begun, there, claim, manifestVars, used, stops>>

PartsBound(s) ==
    /\ At(s, "bind parts")
    /\ proc[s].todo = {}
    /\ Set(s, [proc[s] EXCEPT !.at = "claim", !.todo = proc[s].bound])
    /\ UNCHANGED <<partVars, claim, manifestVars, used, stops>>

ClaimPart(s) ==
    /\ At(s, "claim")
    /\ \E p \in proc[s].todo :
        /\ claim[p] = Nobody
        /\ claim' = [claim EXCEPT ![p] = proc[s].id]
        /\ Set(s, [proc[s] EXCEPT !.mine = @ \union {p}, !.todo = @ \ {p}])
    /\ UNCHANGED <<partVars, manifestVars, used, stops>>

\* Another id holds the part: what became of it (Claims has these steps one by one).
MeetHolder(s) ==
    /\ At(s, "claim")
    /\ \E p \in proc[s].todo :
        LET holder == claim[p]
            met == [proc[s] EXCEPT !.todo = @ \ {p}, !.part = p, !.holder = holder] IN
        /\ holder \notin {Nobody, proc[s].id}
        /\ \/ fate[holder] = Bound /\ Set(s, [met EXCEPT !.gone = @ \union {p}])
           \/ fate[holder] = Revoked /\ Set(s, [met EXCEPT !.at = "take"])
           \/ fate[holder] = Unbound /\ holder \in written /\ Set(s, [met EXCEPT !.at = "bind holder"])
           \/ /\ fate[holder] = Unbound /\ holder \notin written /\ MayHaveExpired(holder)
              /\ Set(s, [met EXCEPT !.at = IF Has("revoke before taking over") THEN "revoke" ELSE "take"])
           \/ /\ fate[holder] = Unbound /\ holder \notin written
              /\ PausesOutliveLeases \/ ~MayHaveExpired(holder)
              /\ Set(s, IF Has("a held part stays") THEN met ELSE [met EXCEPT !.gone = @ \union {p}])
    /\ UNCHANGED <<partVars, claim, manifestVars, used, stops>>

Settle(s, wish) ==
    LET holder == proc[s].holder IN
    /\ fate' = [fate EXCEPT ![holder] = Recorded(holder, wish)]
    /\ Set(s, IF fate'[holder] = Bound THEN [proc[s] EXCEPT !.at = "claim", !.gone = @ \union {proc[s].part}]
              ELSE [proc[s] EXCEPT !.at = "take"])
    /\ UNCHANGED <<partVars, claim, written, members, accepted, used, stops>>

BindHolder(s) == At(s, "bind holder") /\ Settle(s, Bound)

RevokeHolder(s) == At(s, "revoke") /\ Settle(s, Revoked)

TakeOver(s) ==
    LET p == proc[s].part IN
    /\ At(s, "take")
    /\ IF claim[p] = proc[s].holder
       THEN /\ claim' = [claim EXCEPT ![p] = proc[s].id]
            /\ Set(s, [proc[s] EXCEPT !.at = "claim", !.mine = @ \union {p}])
       ELSE /\ UNCHANGED claim
            /\ Set(s, [proc[s] EXCEPT !.at = "claim"])
    /\ UNCHANGED <<partVars, manifestVars, used, stops>>

Won(s) == IF Has("only won parts are sealed") THEN proc[s].mine ELSE proc[s].bound

Seal(s) ==
    /\ At(s, "claim")
    /\ proc[s].todo = {}
    /\ IF Won(s) = {}
       THEN /\ Set(s, [proc[s] EXCEPT !.at = "clear"])
            /\ UNCHANGED <<written, members>>
       ELSE /\ written' = written \union {proc[s].id}
            /\ members' = [members EXCEPT ![proc[s].id] = Won(s)]
            /\ Set(s, IF Has("bind before the parts are deleted") THEN [proc[s] EXCEPT !.at = "bind"]
                      ELSE [proc[s] EXCEPT !.at = "clear", !.gone = @ \union Won(s)])
    /\ UNCHANGED <<partVars, claim, fate, accepted, used, stops>>

Bind(s) ==
    LET i == proc[s].id IN
    /\ At(s, "bind")
    /\ fate' = [fate EXCEPT ![i] = Recorded(i, Bound)]
    /\ Set(s, IF fate'[i] = Bound \/ ~Has("a revoked sealer deletes no part")
              THEN [proc[s] EXCEPT !.at = "clear", !.gone = @ \union proc[s].mine]
              ELSE [proc[s] EXCEPT !.at = "discard"])
    /\ UNCHANGED <<partVars, claim, written, members, accepted, used, stops>>

Discard(s) ==
    /\ At(s, "discard")
    /\ written' = written \ {proc[s].id}
    /\ Set(s, Idle)
    /\ UNCHANGED <<partVars, claim, fate, members, accepted, used, stops>>

Clear(s) ==
    /\ At(s, "clear")
    /\ there' = there \ proc[s].gone
    /\ Set(s, Idle)
    /\ UNCHANGED <<begun, partFate, claim, manifestVars, used, stops>>

Stop(s) ==
    /\ ~At(s, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ Set(s, Idle)
    /\ UNCHANGED <<partVars, claim, manifestVars, used>>

Accept(i) ==
    /\ i \in written \ accepted
    /\ fate[i] # Revoked
    /\ fate' = [fate EXCEPT ![i] = Bound]
    /\ accepted' = accepted \union {i}
    /\ UNCHANGED <<partVars, claim, written, members, used, stops, proc>>

Refuse(i) ==
    /\ i \in written \ accepted
    /\ fate[i] = Revoked
    /\ written' = written \ {i}
    /\ UNCHANGED <<partVars, claim, fate, members, accepted, used, stops, proc>>

Archive(i) ==
    /\ i \in written \intersect accepted
    /\ written' = written \ {i}
    /\ UNCHANGED <<partVars, claim, fate, members, accepted, used, stops, proc>>

Progress(s) ==
    \/ Begin(s) \/ BindPart(s) \/ PartsBound(s) \/ ClaimPart(s) \/ MeetHolder(s) \/ BindHolder(s) \/ RevokeHolder(s)
    \/ TakeOver(s) \/ Seal(s) \/ Bind(s) \/ Discard(s) \/ Clear(s)

Next ==
    \/ \E p \in Parts : WritePart(p) \/ BuilderBinds(p) \/ ClaimantRevokes(p) \/ BuilderDiscards(p)
    \/ \E s \in Sealers : Progress(s) \/ Stop(s)
    \/ \E i \in Ids : Accept(i) \/ Refuse(i) \/ Archive(i)

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec
    /\ \A s \in Sealers : WF_vars(Progress(s))
    /\ \A i \in Ids : WF_vars(Accept(i))

-----------------------------------------------------------------------------
TypesHold ==
    /\ there \subseteq begun /\ begun \subseteq Parts
    /\ claim \in [Parts -> 0..MaxIds]
    /\ written \subseteq Ids /\ accepted \subseteq Ids

\* No part becomes rows twice.
AnEffectOnce == \A i, j \in accepted : i # j => members[i] \intersect members[j] = {}

\* The files of a revoked part go into other manifests, so the part must not become rows, too.
BoundXorRevoked ==
    /\ \A i \in accepted : fate[i] # Revoked
    /\ \A i \in accepted : \A p \in members[i] : partFate[p] = Bound

\* A part that is bound waits, or is in a manifest that the job has or finds.
NothingForgotten ==
    \A p \in begun :
        \/ partFate[p] # Bound
        \/ p \in there
        \/ \E i \in Ids : p \in members[i] /\ fate[i] = Bound /\ i \in written \union accepted

\* Each part becomes rows in the end, or is revoked, as long as there are ids to try.
EachPartArrives ==
    \A p \in Parts : p \in begun ~> (partFate[p] = Revoked \/ (\E i \in accepted : p \in members[i]) \/ used = MaxIds)
=============================================================================
