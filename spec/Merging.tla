------------------------------ MODULE Merging ------------------------------
(* How files of a table are merged: merged files beside the files of commits, which rebuilds replace meanwhile, and    *)
(* whose leftovers are removed. Table shows that a batch on record takes effect once and in order, whatever answers are *)
(* lost or late; here a batch is put on record in one step, and takes effect in another one, done by any process.       *)
(* Each manifest has one file, of generation 1, and of 2 once it is rebuilt. The table may be lost and made again.      *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Manifests, Mergers, MaxMerges, MaxBatches, MaxStops, Guards

Ids == 1..MaxMerges
Files == Manifests \X {1, 2}
Has(guard) == guard \in Guards

VARIABLES
    batches, \* on record: what each does, and to which merge or manifest
    fence,   \* the last batch that the table took
    own,     \* the files of commits that the table lists themselves
    merged,  \* the merged files that it lists
    kept,    \* merged files of earlier snapshots that have not expired
    merges,  \* by id: the base of a merge, and the files whose rows its file has
    disk,    \* the merged files that are there
    commits, \* the files of commits that are there
    stops,
    proc,    \* each merger: its step, the merge that it is at, and what it chose
    going    \* what the remover has found that it may remove

table == <<fence, own, merged>>
vars == <<batches, table, kept, merges, disk, commits, stops, proc, going>>

Idle == [at |-> "idle", id |-> 0, base |-> 0, parts |-> {}]
First == [kind |-> "add", of |-> 0]

Init ==
    /\ batches = <<First>>
    /\ fence = 1
    /\ own = Manifests \X {1}
    /\ merged = {}
    /\ kept = {}
    /\ merges = <<>>
    /\ disk = {}
    /\ commits = Manifests \X {1}
    /\ stops = 0
    /\ proc = [p \in Mergers |-> Idle]
    /\ going = {}

At(p, step) == proc[p].at = step
Set(p, changed) == proc' = [proc EXCEPT ![p] = changed]
IsSettled == fence = Len(batches)
Parts(id) == merges[id].parts
Replaces(batch) == batch.kind # "add"
\* Whether the table cannot get a merge any more, unless it has it by now.
Ended(base) == \E n \in (base + 1)..fence : Replaces(batches[n])

-----------------------------------------------------------------------------
\* It applies what is on record, and chooses files that the table has: some of commits, and some merged ones.
Choose(p) ==
    /\ At(p, "idle") /\ IsSettled /\ Len(merges) < MaxMerges
    /\ \E some \in SUBSET own, others \in SUBSET merged :
        /\ Cardinality(some) + Cardinality(others) >= 2
        /\ Set(p, [Idle EXCEPT !.at = "chosen", !.base = fence, !.parts = some \union UNION {Parts(id) : id \in others}])
    /\ UNCHANGED <<batches, table, kept, merges, disk, commits, stops, going>>

\* The file is written and verified, and the merge is on record. If a part is gone, it gives up.
Write(p) ==
    /\ At(p, "chosen")
    /\ IF proc[p].parts \subseteq commits /\ Len(merges) < MaxMerges
       THEN /\ merges' = Append(merges, [base |-> proc[p].base, parts |-> proc[p].parts])
            /\ disk' = disk \union {Len(merges) + 1}
            /\ Set(p, [proc[p] EXCEPT !.at = "written", !.id = Len(merges) + 1])
       ELSE Set(p, Idle) /\ UNCHANGED <<merges, disk>>
    /\ UNCHANGED <<batches, table, kept, commits, stops, going>>

\* It puts the batch on record, or gives up, and then removes the file.
Propose(p) ==
    /\ At(p, "written") /\ IsSettled
    /\ IF Ended(proc[p].base) /\ Has("a merge is never taken once other files were replaced")
       THEN disk' = disk \ {proc[p].id} /\ UNCHANGED batches
       ELSE /\ Len(batches) < MaxBatches
            /\ batches' = Append(batches, [kind |-> "merge", of |-> proc[p].id])
            /\ UNCHANGED disk
    /\ Set(p, Idle)
    /\ UNCHANGED <<table, kept, merges, commits, stops, going>>

\* A rebuilt manifest, whose new file is in its place; or an operator takes a merged file apart.
Rebuild(m) ==
    /\ IsSettled /\ Len(batches) < MaxBatches
    /\ <<m, 2>> \notin commits
    /\ commits' = commits \union {<<m, 2>>}
    /\ batches' = Append(batches, [kind |-> "rebuild", of |-> m])
    /\ UNCHANGED <<table, kept, merges, disk, stops, proc, going>>

Undo ==
    /\ IsSettled /\ Len(batches) < MaxBatches
    /\ \E id \in merged : batches' = Append(batches, [kind |-> "undo", of |-> id])
    /\ UNCHANGED <<table, kept, merges, disk, commits, stops, proc, going>>

-----------------------------------------------------------------------------
\* A merged file goes in if it is there, and if the table has exactly its parts.
TakeMerge(id) ==
    LET inputs == {other \in merged : Parts(other) \intersect Parts(id) # {}}
        covered == (own \intersect Parts(id)) \union UNION {Parts(other) : other \in inputs}
        isThere == id \in disk \/ ~Has("a merged file that is gone changes nothing")
        isWhole == covered = Parts(id) \/ ~Has("a merged file takes the place of whole files of the table") IN
    IF isThere /\ isWhole
    THEN own' = own \ Parts(id) /\ merged' = (merged \ {other \in inputs : Parts(other) \subseteq Parts(id)}) \union {id}
    ELSE UNCHANGED <<own, merged>>

\* The file of a rebuilt manifest takes the place of the one before, and merged files that have its rows are taken apart.
TakeRebuild(m) ==
    LET apart == {id \in merged : <<m, 1>> \in Parts(id)}
        back == UNION {Parts(id) : id \in apart} IN
    IF Has("a rebuild takes merged files apart")
    THEN own' = ((own \union back) \ {<<m, 1>>}) \union {<<m, 2>>} /\ merged' = merged \ apart
    ELSE own' = (own \ {<<m, 1>>}) \union {<<m, 2>>} /\ UNCHANGED merged

Apply ==
    LET batch == batches[fence + 1] IN
    /\ ~IsSettled
    /\ fence' = fence + 1
    /\ CASE batch.kind = "add" -> own' = commits \intersect (Manifests \X {1}) /\ UNCHANGED merged
         [] batch.kind = "merge" -> TakeMerge(batch.of)
         [] batch.kind = "rebuild" -> TakeRebuild(batch.of)
         [] batch.kind = "undo" ->
            IF batch.of \in merged THEN own' = own \union Parts(batch.of) /\ merged' = merged \ {batch.of}
            ELSE UNCHANGED <<own, merged>>
    /\ kept' = kept \union merged
    /\ UNCHANGED <<batches, merges, disk, commits, stops, proc, going>>

\* Snapshots expire.
Expire ==
    /\ kept' = {}
    /\ kept # {}
    /\ UNCHANGED <<batches, table, merges, disk, commits, stops, proc, going>>

\* Once the table has a rebuilt manifest, the file before is deleted.
Delete(m) ==
    /\ <<m, 2>> \in own /\ <<m, 1>> \in commits
    /\ commits' = commits \ {<<m, 1>>}
    /\ UNCHANGED <<batches, table, kept, merges, disk, stops, proc, going>>

-----------------------------------------------------------------------------
\* The remover looks which files nothing needs, reads which of them snapshots have, and removes the others later.
Look ==
    LET mayGo == {id \in disk \ going : Ended(merges[id].base) \/ ~Has("merged files stay as long as the table may get them")}
        needed == merged \union (IF Has("merged files stay as long as a snapshot has them") THEN kept ELSE {}) IN
    /\ going' = mayGo \ needed
    /\ going' # going
    /\ UNCHANGED <<batches, table, kept, merges, disk, commits, stops, proc>>

Remove ==
    /\ going # {}
    /\ \E id \in going : disk' = disk \ {id} /\ going' = going \ {id}
    /\ UNCHANGED <<batches, table, kept, merges, commits, stops, proc>>

\* A merger dies. The table is lost with its snapshots, and is made again from the first batch on.
Stop(p) ==
    /\ ~At(p, "idle") /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ Set(p, Idle)
    /\ UNCHANGED <<batches, table, kept, merges, disk, commits, going>>

Lose ==
    /\ stops < MaxStops /\ going = {}
    /\ stops' = stops + 1
    /\ fence' = 0 /\ own' = {} /\ merged' = {} /\ kept' = {}
    /\ UNCHANGED <<batches, merges, disk, commits, proc, going>>

Next ==
    \/ Apply \/ Undo \/ Expire \/ Look \/ Remove \/ Lose
    \/ \E p \in Mergers : Choose(p) \/ Write(p) \/ Propose(p) \/ Stop(p)
    \/ \E m \in Manifests : Rebuild(m) \/ Delete(m)

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(Apply)

-----------------------------------------------------------------------------
TypesHold == fence \in 0..MaxBatches /\ own \subseteq Files /\ merged \subseteq Ids /\ disk \subseteq Ids

\* How often the table has rows of a manifest, of any generation.
Times(m) ==
    Cardinality({file \in own : file[1] = m})
    + Cardinality({<<id, file>> \in merged \X Files : file \in Parts(id) /\ file[1] = m})

AnEffectOnce == \A m \in Manifests : Times(m) <= 1

\* The table has each manifest, as it is by the batches on record.
Newest(m) == IF \E n \in 1..Len(batches) : batches[n] = [kind |-> "rebuild", of |-> m] THEN 2 ELSE 1
EachIsThere ==
    IsSettled => \A m \in Manifests :
        \/ <<m, Newest(m)>> \in own
        \/ \E id \in merged : <<m, Newest(m)>> \in Parts(id)

\* What the table lists is there, and what its snapshots list.
NothingIsLost == own \subseteq commits /\ merged \subseteq disk /\ kept \subseteq disk

\* A record never changes.
RecordsStay == [][\A n \in 1..Len(batches) : n <= Len(batches') /\ batches'[n] = batches[n]]_vars

\* What is on record takes effect.
EachTakesEffect == []<>IsSettled
=============================================================================
