------------------------------- MODULE Claims -------------------------------
(* How files come into manifests. Builders and planners claim them; an id is bound to its manifest, or revoked, for    *)
(* good. A claimant may stop at any step: it dies, or a call that took effect is reported as failed. Or it is held up  *)
(* until long after its lease, and goes on. A message comes again until it is acknowledged.                            *)
EXTENDS Naturals, FiniteSets

CONSTANTS Files,
          Builders,            \* claimants that are told of files by messages
          Planners,            \* claimants that list files
          MaxIds,
          MaxStops,
          PausesOutliveLeases, \* whether a living claimant may be taken for a dead one
          Guards               \* what keeps the protocol exact; all of it, unless a guard is left out on purpose

Claimants == Builders \union Planners
Ids == 1..MaxIds
Nobody == 0
NoFile == "no file"
Unbound == "unbound"
Bound == "bound"
Revoked == "revoked"
Has(guard) == guard \in Guards

VARIABLES
    claim,    \* the claims table: the id that holds each file
    fate,     \* the record of each id: bound, revoked, or none so far
    written,  \* the manifests in the watched prefix
    members,  \* the files that each manifest names
    accepted, \* the manifests that the job has taken in: each of their files becomes rows
    pending,  \* the files whose messages are not acknowledged
    used,     \* how many ids were used
    stops,
    proc      \* each claimant: its step, its id, files to claim, claimed and safe, and the file and holder that it met

vars == <<claim, fate, written, members, accepted, pending, used, stops, proc>>

Idle == [at |-> "idle", id |-> Nobody, todo |-> {}, mine |-> {}, safe |-> {}, file |-> NoFile, holder |-> Nobody]

Init ==
    /\ claim = [f \in Files |-> Nobody]
    /\ fate = [i \in Ids |-> Unbound]
    /\ written = {}
    /\ members = [i \in Ids |-> {}]
    /\ accepted = {}
    /\ pending = Files
    /\ used = 0
    /\ stops = 0
    /\ proc = [c \in Claimants |-> Idle]

At(c, step) == proc[c].at = step
Set(c, changed) == proc' = [proc EXCEPT ![c] = changed]

\* Bind and revoke write the same record, create-only: the first one wins.
Recorded(i, wish) == IF fate[i] = Unbound \/ ~Has("one record binds or revokes an id") THEN wish ELSE fate[i]

\* Whether the lease of an id may have run out: if its claimant is gone, or any time where pauses are that long.
MayHaveExpired(i) == PausesOutliveLeases \/ \A c \in Claimants : proc[c].id # i

Begin(c) ==
    /\ At(c, "idle")
    /\ used < MaxIds
    /\ \E group \in SUBSET pending \ {{}} :
        Set(c, [Idle EXCEPT !.at = "claim", !.id = used + 1, !.todo = group])
    /\ used' = used + 1
    /\ UNCHANGED <<claim, fate, written, members, accepted, pending, stops>>

\* The conditional write of a claim.
Claim(c) ==
    /\ At(c, "claim")
    /\ \E f \in proc[c].todo :
        /\ claim[f] = Nobody \/ ~Has("a claim is create-only")
        /\ claim' = [claim EXCEPT ![f] = proc[c].id]
        /\ Set(c, [proc[c] EXCEPT !.mine = @ \union {f}, !.todo = @ \ {f}])
    /\ UNCHANGED <<fate, written, members, accepted, pending, used, stops>>

\* Another id holds the file.
MeetHolder(c) ==
    /\ At(c, "claim")
    /\ \E f \in proc[c].todo :
        /\ claim[f] \notin {Nobody, proc[c].id}
        /\ Set(c, [proc[c] EXCEPT !.at = "judge", !.todo = @ \ {f}, !.file = f, !.holder = claim[f]])
    /\ UNCHANGED <<claim, fate, written, members, accepted, pending, used, stops>>

Safe(c) == [proc[c] EXCEPT !.at = "claim", !.safe = @ \union {proc[c].file}]

\* The record of the holder's id, read.
ReadFate(c) ==
    /\ At(c, "judge")
    /\ Set(c, CASE fate[proc[c].holder] = Bound -> Safe(c)
                [] fate[proc[c].holder] = Revoked -> [proc[c] EXCEPT !.at = "take"]
                [] OTHER -> [proc[c] EXCEPT !.at = "look"])
    /\ UNCHANGED <<claim, fate, written, members, accepted, pending, used, stops>>

\* There was no record; whether the manifest is there.
LookForManifest(c) ==
    /\ At(c, "look")
    /\ \/ /\ proc[c].holder \in written
          /\ IF Has("what was found written is bound") THEN Set(c, [proc[c] EXCEPT !.at = "bind holder"])
             ELSE Set(c, Safe(c))
       \/ /\ proc[c].holder \notin written
          /\ MayHaveExpired(proc[c].holder)
          /\ Set(c, [proc[c] EXCEPT !.at = IF Has("revoke before taking over") THEN "revoke" ELSE "take"])
    /\ UNCHANGED <<claim, fate, written, members, accepted, pending, used, stops>>

\* The holder's lease runs: the file is left to it, and its message comes again.
LeaveToHolder(c) ==
    /\ At(c, "look")
    /\ proc[c].holder \notin written
    /\ PausesOutliveLeases \/ ~MayHaveExpired(proc[c].holder)
    /\ Set(c, IF Has("the message of a held file comes again") THEN [proc[c] EXCEPT !.at = "claim"] ELSE Safe(c))
    /\ UNCHANGED <<claim, fate, written, members, accepted, pending, used, stops>>

Settle(c, wish) ==
    LET holder == proc[c].holder IN
    /\ fate' = [fate EXCEPT ![holder] = Recorded(holder, wish)]
    /\ Set(c, IF fate'[holder] = Bound THEN Safe(c) ELSE [proc[c] EXCEPT !.at = "take"])
    /\ UNCHANGED <<claim, written, members, accepted, pending, used, stops>>

BindHolder(c) == At(c, "bind holder") /\ Settle(c, Bound)

RevokeHolder(c) == At(c, "revoke") /\ Settle(c, Revoked)

\* The claim passes on only if it is still the one that was read.
TakeOver(c) ==
    LET f == proc[c].file IN
    /\ At(c, "take")
    /\ IF claim[f] = proc[c].holder \/ ~Has("a claim passes only from the holder that was read")
       THEN /\ claim' = [claim EXCEPT ![f] = proc[c].id]
            /\ Set(c, [proc[c] EXCEPT !.at = "claim", !.mine = @ \union {f}])
       ELSE /\ UNCHANGED claim
            /\ Set(c, [proc[c] EXCEPT !.at = "claim"])
    /\ UNCHANGED <<fate, written, members, accepted, pending, used, stops>>

\* What goes into the manifest. Without its guard, also a file that another id holds.
Won(c) == proc[c].mine \union (IF Has("only won files are written") THEN {} ELSE {proc[c].file} \ {NoFile})

Write(c) ==
    /\ At(c, "claim")
    /\ proc[c].todo = {}
    /\ Won(c) # {}
    /\ written' = written \union {proc[c].id}
    /\ members' = [members EXCEPT ![proc[c].id] = Won(c)]
    /\ Set(c, IF Has("bind before acknowledging") THEN [proc[c] EXCEPT !.at = "bind"]
              ELSE [proc[c] EXCEPT !.at = "acknowledge", !.safe = @ \union Won(c)])
    /\ UNCHANGED <<claim, fate, accepted, pending, used, stops>>

\* Nothing was won: there is nothing to write.
WriteNothing(c) ==
    /\ At(c, "claim")
    /\ proc[c].todo = {}
    /\ Won(c) = {}
    /\ Set(c, [proc[c] EXCEPT !.at = "acknowledge"])
    /\ UNCHANGED <<claim, fate, written, members, accepted, pending, used, stops>>

\* The own id may have been revoked meanwhile.
Bind(c) ==
    LET i == proc[c].id IN
    /\ At(c, "bind")
    /\ fate' = [fate EXCEPT ![i] = Recorded(i, Bound)]
    /\ Set(c, IF fate'[i] = Bound \/ ~Has("a revoked claimant acknowledges nothing")
              THEN [proc[c] EXCEPT !.at = "acknowledge", !.safe = @ \union proc[c].mine]
              ELSE [proc[c] EXCEPT !.at = "discard"])
    /\ UNCHANGED <<claim, written, members, accepted, pending, used, stops>>

\* A manifest of a revoked id is deleted, and nothing is acknowledged.
Discard(c) ==
    /\ At(c, "discard")
    /\ written' = written \ {proc[c].id}
    /\ Set(c, Idle)
    /\ UNCHANGED <<claim, fate, members, accepted, pending, used, stops>>

\* A planner acknowledges nothing: a file that is in no manifest is in its next listing.
Acknowledge(c) ==
    /\ At(c, "acknowledge")
    /\ pending' = IF c \in Builders THEN pending \ proc[c].safe ELSE pending
    /\ Set(c, Idle)
    /\ UNCHANGED <<claim, fate, written, members, accepted, used, stops>>

\* The claimant dies, or gives up because an answer was lost. What it has sent stays.
Stop(c) ==
    /\ ~At(c, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ Set(c, Idle)
    /\ UNCHANGED <<claim, fate, written, members, accepted, pending, used>>

\* The job binds the id of a manifest that it finds, and takes it in.
Accept(i) ==
    /\ i \in written \ accepted
    /\ fate[i] # Revoked
    /\ fate' = IF Has("the job binds what it takes in") THEN [fate EXCEPT ![i] = Bound] ELSE fate
    /\ accepted' = accepted \union {i}
    /\ UNCHANGED <<claim, written, members, pending, used, stops, proc>>

\* A manifest whose id was revoked is refused, under another id.
Refuse(i) ==
    /\ i \in written \ accepted
    /\ fate[i] = Revoked
    /\ written' = written \ {i}
    /\ UNCHANGED <<claim, fate, members, accepted, pending, used, stops, proc>>

\* A manifest that is done leaves the watched prefix.
Archive(i) ==
    /\ i \in written \intersect accepted
    /\ written' = written \ {i}
    /\ UNCHANGED <<claim, fate, members, accepted, pending, used, stops, proc>>

Progress(c) ==
    \/ Begin(c) \/ Claim(c) \/ MeetHolder(c) \/ ReadFate(c) \/ LookForManifest(c) \/ BindHolder(c) \/ RevokeHolder(c)
    \/ TakeOver(c) \/ Write(c) \/ WriteNothing(c) \/ Bind(c) \/ Discard(c) \/ Acknowledge(c)

Next ==
    \/ \E c \in Claimants : Progress(c) \/ LeaveToHolder(c) \/ Stop(c)
    \/ \E i \in Ids : Accept(i) \/ Refuse(i) \/ Archive(i)

Spec == Init /\ [][Next]_vars

Fairness ==
    /\ \A c \in Claimants : WF_vars(Progress(c) \/ LeaveToHolder(c))
    /\ \A i \in Ids : WF_vars(Accept(i))

FairSpec == Spec /\ Fairness

-----------------------------------------------------------------------------
TypesHold ==
    /\ claim \in [Files -> 0..MaxIds]
    /\ fate \in [Ids -> {Unbound, Bound, Revoked}]
    /\ written \subseteq Ids /\ accepted \subseteq Ids
    /\ pending \subseteq Files

\* No file becomes rows twice.
AnEffectOnce == \A i, j \in accepted : i # j => members[i] \intersect members[j] = {}

\* What the job took in stays bound.
BoundXorRevoked == \A i \in accepted : fate[i] # Revoked

\* A file whose message will not come again is in a manifest that the job has or finds.
NothingForgotten ==
    \A f \in Files \ pending :
        \E i \in Ids : f \in members[i] /\ fate[i] = Bound /\ i \in written \union accepted

\* Each file becomes rows in the end, as long as there are ids to try.
EachFileArrives == \A f \in Files : <>((\E i \in accepted : f \in members[i]) \/ used = MaxIds)
=============================================================================
