------------------------------- MODULE Claims -------------------------------
(* How files come into manifests. Builders and planners claim files for a manifest, whose id is then bound or revoked,  *)
(* for good. A manifest of few files may wait as a pending part; sealers claim such parts for larger manifests.         *)
(* Redrivers put what a done manifest left into new manifests: files, whose claims they take over, or rejected lines,   *)
(* which they write to new files. The redrives of a manifest are numbered; the number is the id.                        *)
(* Each process may stop at any step: it dies, or a call that took effect is reported as failed. Or it is held up until *)
(* long after its lease, and goes on. A message is repeated until it is acknowledged.                                   *)
EXTENDS Naturals, FiniteSets

CONSTANTS Files,               \* announced and listed; a done manifest left all of them if there are redrivers
          Parts,               \* manifests that wait in the pending folder; each is its own id
          Lines,               \* rejected lines that a done manifest left
          Builders,            \* get messages about files
          Planners,            \* list files
          Sealers,             \* list parts
          Redrivers,
          Deferring,           \* those of them that are drivers of a manifest that deferred files, before it is done
          MaxNumber,           \* of redrives: they have the first ids
          MaxIds,
          MaxStops,
          PausesOutliveLeases, \* whether a living process may be taken for a dead one
          Guards               \* all of them, unless one is left out to see a property fail

Claimants == Builders \union Planners \union Sealers
Processes == Claimants \union Redrivers
Ids == 1..MaxIds
Numbers == 1..MaxNumber
Nobody == 0
Source == MaxIds + 1 \* the done manifest that is redriven
NoFile == "no file"
Unbound == "unbound"
Bound == "bound"
Revoked == "revoked"
Has(guard) == guard \in Guards
Left == IF Redrivers = {} THEN {} ELSE Files \union Lines

VARIABLES
    claim,    \* the claims table: the id that holds each file or part
    fate,     \* the record of each id: bound, revoked, or none so far
    written,  \* the manifests in the watched prefix
    members,  \* the files, parts or lines of each manifest
    accepted, \* the manifests that the job has taken in: what they have becomes rows
    done,     \* those of them that are done
    pending,  \* the files whose messages are not acknowledged, and the parts that are not deleted
    begun,    \* the parts that were written at some time
    record,   \* who put each redrive on record; its members are on record with it
    folders,  \* of written lines: the number of the redrive, and the redriver
    used,     \* how many ids were used
    stops,
    proc      \* each process: its step, its id, what it is to claim, has bound, claimed and found safe, the file and holder
              \* that it met, and the redrives that it knows

tables == <<claim, fate>>
manifests == <<written, members, accepted, done>>
messages == <<pending, begun>>
redrives == <<record, folders>>
shared == <<tables, manifests, messages, redrives, used, stops>>
vars == <<shared, proc>>

Idle == [at |-> "idle", id |-> Nobody, todo |-> {}, bound |-> {}, mine |-> {}, safe |-> {}, file |-> NoFile,
         holder |-> Nobody, known |-> {}]

Init ==
    /\ claim = [f \in Files \union Parts |-> IF f \in Left THEN Source ELSE Nobody]
    /\ fate = [i \in Ids \union Parts \union {Source} |-> IF i = Source THEN Bound ELSE Unbound]
    /\ written = {}
    /\ members = [i \in Ids |-> {}]
    /\ accepted = {}
    /\ done = {}
    /\ pending = Files
    /\ begun = {}
    /\ record = [n \in Numbers |-> Nobody]
    /\ folders = {}
    /\ used = MaxNumber
    /\ stops = 0
    /\ proc = [c \in Processes |-> Idle]

At(c, step) == proc[c].at = step
Set(c, changed) == proc' = [proc EXCEPT ![c] = changed]

\* Bind and revoke write the same record, create-only: the first one wins.
Kept(i, wish) == IF fate[i] = Unbound \/ ~Has("one record binds or revokes an id") THEN wish ELSE fate[i]

\* Whether the lease of an id may have run out: if its process is gone, or any time where pauses are that long.
MayHaveExpired(i) == PausesOutliveLeases \/ \A c \in Processes : proc[c].id # i

Begin(c) ==
    /\ At(c, "idle")
    /\ used < MaxIds
    /\ \E group \in SUBSET (pending \intersect (IF c \in Sealers THEN Parts ELSE Files)) \ {{}} :
        Set(c, [Idle EXCEPT !.at = IF c \in Sealers THEN "bind parts" ELSE "claim", !.id = used + 1, !.todo = group])
    /\ used' = used + 1
    /\ UNCHANGED <<tables, manifests, messages, redrives, stops>>

\* A sealer binds the parts, so that no claimant of their files revokes them. One that was revoked is of no use.
BindPart(c) ==
    /\ At(c, "bind parts")
    /\ \E p \in proc[c].todo \ proc[c].bound :
        /\ fate' = IF Has("a part is bound before it is sealed") THEN [fate EXCEPT ![p] = Kept(p, Bound)] ELSE fate
        /\ LET next == IF fate'[p] = Revoked THEN [proc[c] EXCEPT !.todo = @ \ {p}, !.safe = @ \union {p}]
                       ELSE [proc[c] EXCEPT !.bound = @ \union {p}] IN
            Set(c, IF next.todo = next.bound THEN [next EXCEPT !.at = "claim", !.bound = {}] ELSE next)
    /\ UNCHANGED <<claim, manifests, messages, redrives, used, stops>>

\* The conditional write of a claim.
Claim(c) ==
    /\ At(c, "claim")
    /\ \E f \in proc[c].todo :
        /\ claim[f] = Nobody \/ ~Has("a claim is create-only")
        /\ claim' = [claim EXCEPT ![f] = proc[c].id]
        /\ Set(c, [proc[c] EXCEPT !.mine = @ \union {f}, !.todo = @ \ {f}])
    /\ UNCHANGED <<fate, manifests, messages, redrives, used, stops>>

\* Another id holds the file.
MeetHolder(c) ==
    /\ At(c, "claim")
    /\ \E f \in proc[c].todo :
        /\ claim[f] \notin {Nobody, proc[c].id}
        /\ Set(c, [proc[c] EXCEPT !.at = "judge", !.todo = @ \ {f}, !.file = f, !.holder = claim[f]])
    /\ UNCHANGED shared

Safe(c) == [proc[c] EXCEPT !.at = "claim", !.safe = @ \union {proc[c].file}]

\* It reads the record of the holder's id.
ReadFate(c) ==
    /\ At(c, "judge")
    /\ Set(c, CASE fate[proc[c].holder] = Bound -> Safe(c)
                [] fate[proc[c].holder] = Revoked -> [proc[c] EXCEPT !.at = "take"]
                [] OTHER -> [proc[c] EXCEPT !.at = "look"])
    /\ UNCHANGED shared

\* There was no record: it looks for the manifest.
LookForManifest(c) ==
    /\ At(c, "look")
    /\ \/ /\ proc[c].holder \in written
          /\ IF Has("what was found written is bound") THEN Set(c, [proc[c] EXCEPT !.at = "bind holder"])
             ELSE Set(c, Safe(c))
       \/ /\ proc[c].holder \notin written
          /\ MayHaveExpired(proc[c].holder)
          /\ Set(c, [proc[c] EXCEPT !.at = IF Has("revoke before taking over") THEN "revoke" ELSE "take"])
    /\ UNCHANGED shared

\* The holder's lease runs: the file is left to it, and its message comes again.
LeaveToHolder(c) ==
    /\ At(c, "look")
    /\ proc[c].holder \notin written
    /\ PausesOutliveLeases \/ ~MayHaveExpired(proc[c].holder)
    /\ Set(c, IF Has("the message of a held file comes again") THEN [proc[c] EXCEPT !.at = "claim"] ELSE Safe(c))
    /\ UNCHANGED shared

Settle(c, wish) ==
    LET holder == proc[c].holder IN
    /\ fate' = [fate EXCEPT ![holder] = Kept(holder, wish)]
    /\ Set(c, IF fate'[holder] = Bound THEN Safe(c) ELSE [proc[c] EXCEPT !.at = "take"])
    /\ UNCHANGED <<claim, manifests, messages, redrives, used, stops>>

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
    /\ UNCHANGED <<fate, manifests, messages, redrives, used, stops>>

\* What it writes to the manifest. Without the guard, also a file that another id holds.
Won(c) == proc[c].mine \union (IF Has("only won files are written") THEN {} ELSE {proc[c].file} \ {NoFile})

Write(c) ==
    /\ At(c, "claim")
    /\ proc[c].todo = {}
    /\ Won(c) # {}
    /\ written' = written \union {proc[c].id}
    /\ members' = [members EXCEPT ![proc[c].id] = Won(c)]
    /\ Set(c, IF Has("bind before acknowledging") THEN [proc[c] EXCEPT !.at = "bind"]
              ELSE [proc[c] EXCEPT !.at = "acknowledge", !.safe = @ \union Won(c)])
    /\ UNCHANGED <<tables, accepted, done, messages, redrives, used, stops>>

\* Nothing was won: there is nothing to write.
WriteNothing(c) ==
    /\ At(c, "claim")
    /\ proc[c].todo = {}
    /\ Won(c) = {}
    /\ Set(c, [proc[c] EXCEPT !.at = "acknowledge"])
    /\ UNCHANGED shared

\* Its own id may have been revoked meanwhile.
Bind(c) ==
    LET i == proc[c].id IN
    /\ At(c, "bind")
    /\ fate' = [fate EXCEPT ![i] = Kept(i, Bound)]
    /\ Set(c, IF fate'[i] = Bound \/ ~Has("a revoked claimant acknowledges nothing")
              THEN [proc[c] EXCEPT !.at = "acknowledge", !.safe = @ \union proc[c].mine]
              ELSE [proc[c] EXCEPT !.at = "discard"])
    /\ UNCHANGED <<claim, manifests, messages, redrives, used, stops>>

\* A manifest of a revoked id is deleted, and nothing is acknowledged.
Discard(c) ==
    /\ At(c, "discard")
    /\ written' = written \ {proc[c].id}
    /\ Set(c, Idle)
    /\ UNCHANGED <<tables, members, accepted, done, messages, redrives, used, stops>>

\* A builder acknowledges messages, and a sealer deletes parts. A planner does neither: a file that is in no manifest is
\* in its next listing.
Acknowledge(c) ==
    /\ At(c, "acknowledge")
    /\ pending' = IF c \in Planners THEN pending ELSE pending \ proc[c].safe
    /\ Set(c, Idle)
    /\ UNCHANGED <<tables, manifests, begun, redrives, used, stops>>

\* The process dies, or gives up because an answer was lost. What it has sent stays.
Stop(c) ==
    /\ ~At(c, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ Set(c, Idle)
    /\ UNCHANGED <<tables, manifests, messages, redrives, used>>

-----------------------------------------------------------------------------
\* Builders write parts, and bind or discard them. A claimant that meets a file of a part that is not bound revokes it.
WritePart(p) ==
    /\ p \notin begun
    /\ begun' = begun \union {p}
    /\ pending' = pending \union {p}
    /\ UNCHANGED <<tables, manifests, redrives, used, stops, proc>>

BuilderBindsPart(p) ==
    /\ p \in begun /\ fate[p] = Unbound
    /\ fate' = [fate EXCEPT ![p] = Bound]
    /\ UNCHANGED <<claim, manifests, messages, redrives, used, stops, proc>>

RevokePart(p) ==
    /\ fate[p] # Kept(p, Revoked)
    /\ fate' = [fate EXCEPT ![p] = Revoked]
    /\ UNCHANGED <<claim, manifests, messages, redrives, used, stops, proc>>

DiscardPart(p) ==
    /\ p \in pending /\ fate[p] = Revoked
    /\ pending' = pending \ {p}
    /\ UNCHANGED <<tables, manifests, begun, redrives, used, stops, proc>>

-----------------------------------------------------------------------------
OnRecord == {n \in Numbers : record[n] # Nobody}
InEffect(n) == record[n] # Nobody /\ fate[n] # Revoked
Taken == UNION {members[n] : n \in {each \in Numbers : InEffect(each)}}

\* The redriver reads the records of all redrives of the manifest, and what became of them.
ReadLog(r) ==
    /\ At(r, "idle") /\ Left \ Taken # {}
    /\ Set(r, [Idle EXCEPT !.at = "choose", !.known = OnRecord, !.todo = Left \ Taken])
    /\ UNCHANGED shared

\* A redrive is on record, but its manifest was never written.
Heal(r) ==
    /\ At(r, "idle")
    /\ \E n \in OnRecord :
        /\ fate[n] = Unbound /\ n \notin written
        /\ written' = written \union {n}
    /\ UNCHANGED <<tables, members, accepted, done, messages, redrives, used, stops, proc>>

\* The next number whose id is not used. If a number was skipped, a faster redriver may have used it.
ChooseNumber(r) ==
    LET newest == IF proc[r].known = {} THEN 0 ELSE CHOOSE n \in proc[r].known : \A other \in proc[r].known : other <= n
        free == {n \in Numbers : n > newest /\ fate[n] = Unbound} IN
    /\ At(r, "choose") /\ free # {}
    /\ LET n == CHOOSE each \in free : \A other \in free : each <= other IN
        IF n > newest + 1 /\ OnRecord # proc[r].known /\ Has("the log is read again after a number is skipped")
        THEN Set(r, Idle)
        ELSE Set(r, [proc[r] EXCEPT !.id = n, !.at = CASE ~(proc[r].todo \subseteq Files) -> "write lines"
                                                       [] r \in Deferring -> "record" \* the claims stay with the source
                                                       [] OTHER -> "claim again"])
    /\ UNCHANGED shared

\* The source holds the file, or an earlier redrive of it.
MayClaim(f, n) ==
    /\ claim[f] \in Numbers \union {Source} \/ ~Has("files of other manifests are left to them")
    /\ claim[f] \notin Numbers \/ claim[f] <= n \/ ~Has("files of a later redrive are left to it")

\* It takes the claims over.
ClaimAgain(r) ==
    LET won == {f \in proc[r].todo : MayClaim(f, proc[r].id)} IN
    /\ At(r, "claim again")
    /\ claim' = [f \in Files |-> IF f \in won THEN proc[r].id ELSE claim[f]]
    /\ Set(r, IF won = {} THEN Idle ELSE [proc[r] EXCEPT !.at = "record", !.todo = won])
    /\ UNCHANGED <<fate, manifests, messages, redrives, used, stops>>

WriteLines(r) ==
    /\ At(r, "write lines")
    /\ folders' = folders \union {<<proc[r].id, r>>}
    /\ Set(r, [proc[r] EXCEPT !.at = "record"])
    /\ UNCHANGED <<tables, manifests, messages, record, used, stops>>

\* The record is create-only, and holds the manifest: from here on, the redrive takes effect.
Record(r) ==
    LET n == proc[r].id IN
    /\ At(r, "record")
    /\ IF record[n] = Nobody \/ ~Has("the record of a redrive is create-only")
       THEN /\ record' = [record EXCEPT ![n] = r]
            /\ members' = [members EXCEPT ![n] = proc[r].todo]
            /\ Set(r, [proc[r] EXCEPT !.at = "deliver"])
       ELSE /\ UNCHANGED <<record, members>>
            /\ Set(r, IF proc[r].todo \subseteq Files THEN Idle ELSE [proc[r] EXCEPT !.at = "delete lines"])
    /\ UNCHANGED <<tables, written, accepted, done, messages, folders, used, stops>>

\* Another redrive took the number, so no manifest has these lines.
DeleteLines(r) ==
    LET n == proc[r].id IN
    /\ At(r, "delete lines")
    /\ folders' = IF Has("each redrive writes lines to its own folder") THEN folders \ {<<n, r>>}
                  ELSE {each \in folders : each[1] # n}
    /\ Set(r, Idle)
    /\ UNCHANGED <<tables, manifests, messages, record, used, stops>>

Deliver(r) ==
    /\ At(r, "deliver")
    /\ written' = written \union {proc[r].id}
    /\ Set(r, Idle)
    /\ UNCHANGED <<tables, members, accepted, done, messages, redrives, used, stops>>

\* The cleaner deletes old lines, by the number of their redrive.
CleanerExpiresLines(n) ==
    /\ n \in done \/ ~Has("the cleaner spares lines that are not committed and done")
    /\ \E each \in folders : each[1] = n
    /\ folders' = {each \in folders : each[1] # n}
    /\ UNCHANGED <<tables, manifests, messages, record, used, stops, proc>>

-----------------------------------------------------------------------------
\* The job binds the id of a manifest that it finds, and takes it in.
Accept(i) ==
    /\ i \in written \ accepted
    /\ fate[i] # Revoked \/ ~Has("a revoked manifest is refused")
    /\ fate' = IF Has("the job binds what it takes in") THEN [fate EXCEPT ![i] = Bound] ELSE fate
    /\ accepted' = accepted \union {i}
    /\ UNCHANGED <<claim, written, members, done, messages, redrives, used, stops, proc>>

\* A manifest whose id was revoked is refused, under another id.
Refuse(i) ==
    /\ i \in written \ accepted
    /\ fate[i] = Revoked
    /\ written' = written \ {i}
    /\ UNCHANGED <<tables, members, accepted, done, messages, redrives, used, stops, proc>>

\* A manifest that is done leaves the watched prefix.
Archive(i) ==
    /\ i \in written \intersect accepted
    /\ written' = written \ {i}
    /\ done' = done \union {i}
    /\ UNCHANGED <<tables, members, accepted, messages, redrives, used, stops, proc>>

-----------------------------------------------------------------------------
Progress(c) ==
    \/ Begin(c) \/ BindPart(c) \/ Claim(c) \/ MeetHolder(c) \/ ReadFate(c) \/ LookForManifest(c) \/ BindHolder(c)
    \/ RevokeHolder(c) \/ TakeOver(c) \/ Write(c) \/ WriteNothing(c) \/ Bind(c) \/ Discard(c) \/ Acknowledge(c)

ProgressOfRedrive(r) ==
    \/ ReadLog(r) \/ ChooseNumber(r) \/ ClaimAgain(r) \/ WriteLines(r) \/ Record(r) \/ DeleteLines(r) \/ Deliver(r)

Next ==
    \/ \E c \in Claimants : Progress(c) \/ LeaveToHolder(c)
    \/ \E r \in Redrivers : ProgressOfRedrive(r) \/ Heal(r)
    \/ \E c \in Processes : Stop(c)
    \/ \E i \in Ids : Accept(i) \/ Refuse(i) \/ Archive(i)
    \/ \E p \in Parts : WritePart(p) \/ BuilderBindsPart(p) \/ RevokePart(p) \/ DiscardPart(p)
    \/ \E n \in Numbers : CleanerExpiresLines(n)

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec
    /\ \A c \in Claimants : WF_vars(Progress(c) \/ LeaveToHolder(c))
    /\ \A r \in Redrivers : WF_vars(ProgressOfRedrive(r)) /\ WF_vars(Heal(r))
    /\ \A i \in Ids : WF_vars(Accept(i)) /\ WF_vars(Archive(i))

-----------------------------------------------------------------------------
TypesHold ==
    /\ claim \in [Files \union Parts -> 0..Source]
    /\ fate \in [Ids \union Parts \union {Source} -> {Unbound, Bound, Revoked}]
    /\ written \subseteq Ids /\ accepted \subseteq Ids /\ done \subseteq Ids
    /\ pending \subseteq Files \union begun /\ begun \subseteq Parts

\* No file, part or line becomes rows twice.
AnEffectOnce == \A i, j \in accepted : i # j => members[i] \intersect members[j] = {}

\* What the job took in stays bound. The files of a revoked part go into other manifests, so the part is in none.
BoundXorRevoked ==
    /\ \A i \in accepted : fate[i] # Revoked
    /\ \A i \in accepted : \A p \in members[i] \intersect Parts : fate[p] = Bound

\* A file whose message was acknowledged is in a manifest that the job has or finds, and so is a bound part that was
\* deleted. Or a done manifest left the file, and no builder took it over: it is redriven.
NothingForgotten ==
    \A t \in (Files \union begun) \ pending :
        \/ t \in Parts /\ fate[t] # Bound
        \/ t \in Left /\ claim[t] \in Numbers \union {Source}
        \/ \E i \in Ids : t \in members[i] /\ fate[i] = Bound /\ i \in written \union accepted

\* The record of a redrive never changes.
RecordsStay == [][\A n \in OnRecord : record'[n] = record[n] /\ members'[n] = members[n]]_vars

\* The lines of a redrive that takes effect are there until it is done.
LinesAreKept == \A n \in Numbers \ done : InEffect(n) /\ members[n] \subseteq Lines => <<n, record[n]>> \in folders

\* Whether no id is left to try: no number for a redrive, or no id for the claimants of a file or part.
HasNoIds(t) ==
    IF t \in Left /\ (t \in Lines \/ claim[t] \in Numbers \union {Source})
    THEN fate[MaxNumber] = Revoked \/ record[MaxNumber] # Nobody
    ELSE used = MaxIds

\* Each file, part and line becomes rows in the end, unless the part is revoked.
EachArrives ==
    \A t \in Files \union Parts \union Lines :
        (t \in Parts => t \in begun)
            ~> ((\E i \in accepted : t \in members[i]) \/ (t \in Parts /\ fate[t] = Revoked) \/ HasNoIds(t))
=============================================================================
