------------------------------ MODULE Merging ------------------------------
(* How files of a table are merged: merged files beside the files of commits, which rebuilds replace meanwhile, and    *)
(* whose leftovers are removed. Table shows that a batch on record takes effect once and in order, whatever answers are *)
(* lost or late; here a batch is put on record in one step, and takes effect in another one, done by any process.       *)
(* Each manifest has one file, of generation 1, and of 2 once it is rebuilt. The table may be lost and made again.      *)
(* With Removes, files of commits whose rows a merged file has are removed, once no snapshot has them.                  *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Manifests, Mergers, MaxMerges, MaxBatches, MaxStops, Removes, Guards

Ids == 1..MaxMerges
Files == Manifests \X {1, 2}
Has(guard) == guard \in Guards

VARIABLES
    batches, \* on record: what each does, to which merge or manifest, and the merge that has what a rebuild left
    fence,   \* the last batch that the table took
    own,     \* the files of commits that the table lists themselves
    merged,  \* the merged files that it lists
    kept,    \* merged files of earlier snapshots that have not expired
    keptOwn, \* and files of commits of these
    merges,  \* by id: the base of a merge, and the files whose rows its file has
    disk,    \* the merged files that are there
    commits, \* the files of commits that are there
    released, \* on record: merged files whose parts may be gone
    seen,    \* those that were on record when the table took its last batch
    stops,
    proc,    \* each merger: its step, the merge that it is at, and what it chose
    going,   \* what the remover of merged files has found that it may remove
    rem      \* the remover of files of commits: its step, the merged file, and the batch that says so

table == <<fence, own, merged>>
snapshots == <<kept, keptOwn>>
records == <<released, seen>>
vars == <<batches, table, snapshots, merges, disk, commits, records, stops, proc, going, rem>>

Idle == [at |-> "idle", id |-> 0, base |-> 0, parts |-> {}, inputs |-> {}]
NoRemoval == [at |-> "idle", id |-> 0, number |-> 0]
Batch(kind, of) == [kind |-> kind, of |-> of, left |-> 0]
First == Batch("add", 0)

Init ==
    /\ batches = <<First>>
    /\ fence = 1
    /\ own = Manifests \X {1}
    /\ merged = {}
    /\ kept = {}
    /\ keptOwn = {}
    /\ merges = <<>>
    /\ disk = {}
    /\ commits = Manifests \X {1}
    /\ released = {}
    /\ seen = {}
    /\ stops = 0
    /\ proc = [p \in Mergers |-> Idle]
    /\ going = {}
    /\ rem = NoRemoval

At(p, step) == proc[p].at = step
Set(p, changed) == proc' = [proc EXCEPT ![p] = changed]
IsSettled == fence = Len(batches)
Parts(id) == merges[id].parts
Replaces(batch) == batch.kind # "add"
\* Whether the table cannot get a merge any more, unless it has it by now.
Ended(base) == \E n \in (base + 1)..fence : Replaces(batches[n])
\* The generation of a manifest by the batches on record.
Newest(m) == IF \E n \in 1..Len(batches) : batches[n].kind = "rebuild" /\ batches[n].of = m THEN 2 ELSE 1
\* A file that is gone because it was merged.
IsMoved(file) == file \notin commits /\ \E id \in released : file \in Parts(id)
\* Who puts the next batch on record read the records of what may be gone after the last batch.
Views == {seen, released}

-----------------------------------------------------------------------------
\* It applies what is on record, and chooses files that the table has: some of commits, and some merged ones.
Choose(p) ==
    /\ At(p, "idle") /\ IsSettled /\ Len(merges) < MaxMerges
    /\ \E some \in SUBSET own, others \in SUBSET merged :
        /\ Cardinality(some) + Cardinality(others) >= 2
        /\ Set(p, [Idle EXCEPT !.at = "chosen", !.base = fence, !.inputs = others,
                               !.parts = some \union UNION {Parts(id) : id \in others}])
    /\ UNCHANGED <<batches, table, snapshots, merges, disk, commits, records, stops, going, rem>>

\* The file is written and verified, and the merge is on record; first, if parts of a file that it is made of may be gone,
\* that those of the new one may be. If a file is gone, it gives up.
Write(p) ==
    LET inputs == proc[p].inputs
        own_parts == proc[p].parts \ UNION {Parts(id) : id \in inputs}
        inherits == inputs \intersect released # {} /\ Has("a merged file of parts that may be gone is on record") IN
    /\ At(p, "chosen")
    /\ IF own_parts \subseteq commits /\ inputs \subseteq disk /\ Len(merges) < MaxMerges
       THEN /\ merges' = Append(merges, [base |-> proc[p].base, parts |-> proc[p].parts])
            /\ disk' = disk \union {Len(merges) + 1}
            /\ released' = IF inherits THEN released \union {Len(merges) + 1} ELSE released
            /\ Set(p, [Idle EXCEPT !.at = "written", !.base = proc[p].base, !.id = Len(merges) + 1])
       ELSE Set(p, Idle) /\ UNCHANGED <<merges, disk, released>>
    /\ UNCHANGED <<batches, table, snapshots, commits, seen, stops, going, rem>>

\* It puts the batch on record, or gives up, and then removes the file.
Propose(p) ==
    /\ At(p, "written") /\ IsSettled
    /\ IF Ended(proc[p].base) /\ Has("a merge is never taken once other files were replaced")
       THEN disk' = disk \ {proc[p].id} /\ released' = released \ {proc[p].id} /\ UNCHANGED batches
       ELSE /\ Len(batches) < MaxBatches
            /\ batches' = Append(batches, Batch("merge", proc[p].id))
            /\ UNCHANGED <<disk, released>>
    /\ Set(p, Idle)
    /\ UNCHANGED <<table, snapshots, merges, commits, seen, stops, going, rem>>

\* A rebuilt manifest, whose new file is in its place. Where a merged file has rows of the one before, and its other parts
\* may be gone, these are written to one more merged file, which goes in by the same batch.
Rebuild(m) ==
    /\ IsSettled /\ Len(batches) < MaxBatches
    /\ Newest(m) = 1
    /\ commits' = commits \union {<<m, 2>>}
    /\ \E view \in Views :
        LET holders == {id \in merged \intersect view : <<m, 1>> \in Parts(id)}
            parts == (UNION {Parts(id) : id \in holders}) \ {<<m, 1>>} IN
        IF parts # {} /\ Has("a rebuild writes anew what is left where parts may be gone")
        THEN /\ Len(merges) < MaxMerges
             /\ merges' = Append(merges, [base |-> fence, parts |-> parts])
             /\ disk' = disk \union {Len(merges) + 1}
             /\ released' = released \union {Len(merges) + 1}
             /\ batches' = Append(batches, [Batch("rebuild", m) EXCEPT !.left = Len(merges) + 1])
        ELSE batches' = Append(batches, Batch("rebuild", m)) /\ UNCHANGED <<merges, disk, released>>
    /\ UNCHANGED <<table, snapshots, seen, stops, proc, going, rem>>

\* An operator takes a merged file apart.
Undo ==
    /\ IsSettled /\ Len(batches) < MaxBatches
    /\ \E id \in merged, view \in Views :
        /\ id \notin view \/ ~Has("no file whose parts may be gone is taken apart")
        /\ batches' = Append(batches, Batch("undo", id))
    /\ UNCHANGED <<table, snapshots, merges, disk, commits, records, stops, proc, going, rem>>

-----------------------------------------------------------------------------
\* What the table gets of files of commits: not those whose rows are in merged files.
Listed(files) == {file \in files : ~IsMoved(file) \/ ~Has("a table that is made again passes over what was moved")}

\* Files come and go. Merged files with rows of those that go are taken apart. A merged file goes in if it is there, and if
\* the table has exactly its parts, but for those that are gone because they were merged.
Take(new, gone, id) ==
    LET apart == IF Has("a rebuild takes merged files apart") THEN {a \in merged : Parts(a) \intersect gone # {}} ELSE {}
        back == (UNION {Parts(a) : a \in apart}) \ gone
        wanted == IF id = 0 THEN {} ELSE Parts(id)
        inputs == {other \in merged \ apart : Parts(other) \intersect wanted # {}}
        covered == (((own \ gone) \union back) \intersect wanted) \union UNION {Parts(other) : other \in inputs}
        isThere == id \in disk \/ ~Has("a merged file that is gone changes nothing")
        isWhole == \/ covered \subseteq wanted /\ \A file \in wanted \ covered : IsMoved(file)
                   \/ ~Has("a merged file takes the place of whole files of the table")
        goesIn == id # 0 /\ isThere /\ isWhole
        parts == IF goesIn THEN wanted ELSE {} IN
    /\ own' = ((own \ (gone \union parts)) \union Listed(back \ parts)) \union new
    /\ merged' = ((merged \ apart) \ {other \in inputs : Parts(other) \subseteq parts}) \union (IF goesIn THEN {id} ELSE {})

Originals == {file \in Manifests \X {1} : Newest(file[1]) = 1 \/ file \in commits}

Apply ==
    LET batch == batches[fence + 1] IN
    /\ ~IsSettled
    /\ fence' = fence + 1
    /\ CASE batch.kind = "add" -> own' = Listed(Originals) /\ UNCHANGED merged
         [] batch.kind = "merge" -> Take({}, {}, batch.of)
         [] batch.kind = "rebuild" -> Take(Listed({<<batch.of, 2>>}), {<<batch.of, 1>>}, batch.left)
         [] batch.kind = "undo" ->
            IF batch.of \in merged THEN own' = own \union Listed(Parts(batch.of)) /\ merged' = merged \ {batch.of}
            ELSE UNCHANGED <<own, merged>>
         [] batch.kind = "release" -> UNCHANGED <<own, merged>>
    /\ kept' = kept \union merged
    /\ keptOwn' = IF Removes THEN keptOwn \union own ELSE {}
    /\ seen' = released
    /\ UNCHANGED <<batches, merges, disk, commits, released, stops, proc, going, rem>>

\* Snapshots expire.
Expire ==
    /\ kept' = {} /\ keptOwn' = {}
    /\ kept # {} \/ keptOwn # {}
    /\ UNCHANGED <<batches, table, merges, disk, commits, records, stops, proc, going, rem>>

\* Once the table has a rebuilt manifest, the file before is deleted.
Delete(m) ==
    /\ <<m, 2>> \in own /\ <<m, 1>> \in commits
    /\ commits' = commits \ {<<m, 1>>}
    /\ UNCHANGED <<batches, table, snapshots, merges, disk, records, stops, proc, going, rem>>

-----------------------------------------------------------------------------
\* The remover of files of commits: it finds a merged file of the table whose parts no snapshot has, and records it.
Record ==
    /\ Removes /\ rem.at = "idle"
    /\ \E id \in merged :
        /\ Parts(id) \intersect commits # {}
        /\ Parts(id) \intersect (own \union keptOwn) = {} \/ ~Has("parts stay as long as a snapshot has them")
        /\ rem' = [NoRemoval EXCEPT !.at = "recorded", !.id = id]
        /\ released' = IF Has("it is on record that parts may be gone") THEN released \union {id} ELSE released
    /\ UNCHANGED <<batches, table, snapshots, merges, disk, commits, seen, stops, proc, going>>

\* If the table still has the merged file, the next batch says so. It changes nothing but the fence.
Release ==
    /\ rem.at = "recorded" /\ IsSettled
    /\ IF rem.id \in merged \/ ~Has("parts go if the table has the merged file")
       THEN IF Has("a batch says that parts may go")
            THEN /\ Len(batches) < MaxBatches
                 /\ batches' = Append(batches, Batch("release", rem.id))
                 /\ rem' = [rem EXCEPT !.at = "released", !.number = Len(batches) + 1]
            ELSE rem' = [rem EXCEPT !.at = "released", !.number = fence] /\ UNCHANGED batches
       ELSE rem' = NoRemoval /\ UNCHANGED batches
    /\ UNCHANGED <<table, snapshots, merges, disk, commits, records, stops, proc, going>>

\* It deletes the parts, one after the other.
RemovePart ==
    /\ rem.at = "released" /\ fence >= rem.number
    /\ \E file \in Parts(rem.id) \intersect commits :
        /\ commits' = commits \ {file}
        /\ rem' = IF Parts(rem.id) \intersect commits = {file} THEN NoRemoval ELSE rem
    /\ UNCHANGED <<batches, table, snapshots, merges, disk, records, stops, proc, going>>

\* The remover of merged files looks which ones nothing needs, reads which of them snapshots have, and removes the others later.
Look ==
    LET mayGo == {id \in disk \ going : Ended(merges[id].base) \/ ~Has("merged files stay as long as the table may get them")}
        needed == merged \union (IF Has("merged files stay as long as a snapshot has them") THEN kept ELSE {}) IN
    /\ going' = mayGo \ needed
    /\ going' # going
    /\ UNCHANGED <<batches, table, snapshots, merges, disk, commits, records, stops, proc, rem>>

Remove ==
    /\ going # {}
    /\ \E id \in going : disk' = disk \ {id} /\ going' = going \ {id} /\ released' = released \ {id}
    /\ UNCHANGED <<batches, table, snapshots, merges, commits, seen, stops, proc, rem>>

\* A merger dies, or the remover of files of commits. The table is lost with its snapshots, and is made again from the first batch on.
Stop(p) ==
    /\ ~At(p, "idle") /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ Set(p, Idle)
    /\ UNCHANGED <<batches, table, snapshots, merges, disk, commits, records, going, rem>>

StopRemoval ==
    /\ rem.at # "idle" /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ rem' = NoRemoval
    /\ UNCHANGED <<batches, table, snapshots, merges, disk, commits, records, proc, going>>

Lose ==
    /\ stops < MaxStops /\ going = {} /\ rem.at = "idle"
    /\ stops' = stops + 1
    /\ fence' = 0 /\ own' = {} /\ merged' = {} /\ kept' = {} /\ keptOwn' = {}
    /\ seen' = released
    /\ UNCHANGED <<batches, merges, disk, commits, released, proc, going, rem>>

Next ==
    \/ Apply \/ Undo \/ Expire \/ Look \/ Remove \/ Lose
    \/ Record \/ Release \/ RemovePart \/ StopRemoval
    \/ \E p \in Mergers : Choose(p) \/ Write(p) \/ Propose(p) \/ Stop(p)
    \/ \E m \in Manifests : Rebuild(m) \/ Delete(m)

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(Apply)

-----------------------------------------------------------------------------
TypesHold ==
    /\ fence \in 0..MaxBatches
    /\ own \union commits \union keptOwn \subseteq Files
    /\ merged \union disk \union released \union seen \subseteq Ids

\* How often the table has rows of a manifest, of any generation.
Times(m) ==
    Cardinality({file \in own : file[1] = m})
    + Cardinality({<<id, file>> \in merged \X Files : file \in Parts(id) /\ file[1] = m})

AnEffectOnce == \A m \in Manifests : Times(m) <= 1

\* The table has each manifest, as it is by the batches on record.
EachIsThere ==
    IsSettled => \A m \in Manifests :
        \/ <<m, Newest(m)>> \in own
        \/ \E id \in merged : <<m, Newest(m)>> \in Parts(id)

\* What the table lists is there, and what its snapshots list, but for files that a rebuild replaced.
NothingIsLost ==
    /\ own \subseteq commits /\ merged \subseteq disk /\ kept \subseteq disk
    /\ \A file \in keptOwn : file \in commits \/ file[2] < Newest(file[1])

\* A reader of the ledger finds the rows of each manifest: in its file, or in a merged one that is on record for that.
RowsAreFound ==
    \A m \in Manifests :
        LET file == <<m, Newest(m)>> IN
        file \in commits \/ \E id \in released \intersect disk : file \in Parts(id)

\* A record never changes.
RecordsStay == [][\A n \in 1..Len(batches) : n <= Len(batches') /\ batches'[n] = batches[n]]_vars

\* What is on record takes effect.
EachTakesEffect == []<>IsSettled
=============================================================================
