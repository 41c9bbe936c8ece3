------------------------------- MODULE Table -------------------------------
(* How placed manifests become visible in a table, and how its files are merged: numbered batches on record, and one    *)
(* change of the table for each. A batch adds manifests, replaces files by a merged file, replaces the file of a        *)
(* manifest by a rebuilt one, takes a merged file apart, or says that files may go whose rows a merged file has.        *)
(* Drivers commit at the same time. Each may be held up at any step for as long as it takes, or stop there: it dies.    *)
(* The answer to a change may be lost, before or after it took effect, and a change may land long after it was sent.    *)
(* Other programs change the table, too. The catalog may refuse a batch for ever because of a manifest. Then the table  *)
(* passes over the batch, by a change without files; its manifests go on in smaller batches, and one that was alone is  *)
(* held back until it is released. A manifest has one file, of generation 1, and of 2 once it is rebuilt. Where there   *)
(* are no drivers, the table begins with all manifests, and may be lost and made again from the first batch on.         *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Manifests,
          Bad,          \* those that the catalog may refuse
          Drivers,
          Mergers,
          MaxBatches,
          MaxSnapshots,
          MaxMerges,
          MaxStops,
          Removes,      \* whether files of commits are removed once a merged file has their rows
          Guards

Processes == Drivers \union Mergers
Numbers == 1..MaxBatches
Ids == 1..MaxMerges
Files == Manifests \X {1, 2}
Has(guard) == guard \in Guards

VARIABLES
    placed,   \* of each driver: the manifests that it placed and does not know to be done
    records,  \* of each number the batch on record: its kind, the manifests that it adds, the merge or manifest that it is
              \* about, and the merge that has what a rebuild left
    fence,    \* a property of the table: the last batch that it took
    snapshot, \* its current snapshot
    own,      \* how often each file of a commit is in it
    merged,   \* the merged files that are in it
    kept,     \* merged files of earlier snapshots that have not expired
    keptOwn,  \* and files of commits of these
    seen,     \* the merged files whose parts might be gone, by the records, when the table took its last batch
    refused,  \* a property, too: the last batch that it passed over
    applied,  \* the batches that the table took, in order; with a minus, those that it passed over
    verdicts, \* the batches that are on record as refused
    held,     \* the manifests that are held back, by a record of their own
    done,
    finished, \* up to which batch all manifests are done, as it is on record
    sent,     \* changes that may still land
    merges,   \* by id: the base of a merge, and the parts whose rows its file has
    disk,     \* the merged files that are there
    commits,  \* the files of commits that are there
    released, \* on record: merged files whose parts may be gone
    going,    \* what the remover of merged files has found that it may remove
    rem,      \* the remover of files of commits: its step, the merged file, and the batch that says so
    stops,
    proc      \* each driver and merger: its step, the head that it read, and what it chose; of a driver the record that it
              \* read, and how far it has read; of a merger its merge, and the merged files that it merges again

snapshots == <<kept, keptOwn>>
table == <<fence, snapshot, own, merged, snapshots, seen, refused, applied>>
refusals == <<verdicts, held>>
work == <<placed, refusals, done, finished, sent>>
files == <<merges, disk, commits, released, going, rem>>
shared == <<records, table, work, files, stops>>
vars == <<shared, proc>>

Batch(kind, of) == [kind |-> kind, adds |-> {}, of |-> of, left |-> 0]
Adding(some) == [Batch("add", 0) EXCEPT !.adds = some]
None == Batch("none", 0)
Idle == [at |-> "idle", fence |-> 0, snapshot |-> 0, chosen |-> {}, batch |-> None, from |-> 0, id |-> 0, inputs |-> {}]
NoRemoval == [at |-> "idle", id |-> 0, number |-> 0]

Init ==
    \* A manifest may be placed by several drivers: one that died, and those that go on with its work.
    /\ placed \in {begun \in [Drivers -> SUBSET Manifests] : Drivers = {} \/ UNION {begun[d] : d \in Drivers} = Manifests}
    /\ fence = IF Drivers = {} THEN 1 ELSE 0
    /\ records = [n \in Numbers |-> IF n <= fence THEN Adding(Manifests) ELSE None]
    /\ snapshot = fence
    /\ own = [file \in Files |-> IF file[2] = 1 THEN fence ELSE 0]
    /\ merged = {} /\ kept = {} /\ keptOwn = {} /\ seen = {}
    /\ refused = 0
    /\ applied = IF Drivers = {} THEN <<1>> ELSE <<>>
    /\ verdicts = {} /\ held = {}
    /\ done = IF Drivers = {} THEN Manifests ELSE {}
    /\ finished = 0
    /\ sent = {}
    /\ merges = <<>> /\ disk = {} /\ released = {}
    /\ commits = Manifests \X {1}
    /\ going = {} /\ rem = NoRemoval
    /\ stops = 0
    /\ proc = [p \in Processes |-> Idle]

At(p, step) == proc[p].at = step
Set(p, changed) == proc' = [proc EXCEPT ![p] = changed]
GoTo(p, step) == Set(p, [proc[p] EXCEPT !.at = step])
Next1(d) == proc[d].fence + 1

\* What the table lists, of the files of commits.
Listed == {file \in Files : own[file] > 0}
Parts(id) == merges[id].parts
\* The generation of a manifest by the batches on record.
Newest(m) == IF \E n \in Numbers : records[n].kind = "rebuild" /\ records[n].of = m THEN 2 ELSE 1
\* Whether the table cannot get a merge any more, unless it has it by now.
Ended(base) == \E n \in (base + 1)..fence : records[n].kind # "add"
\* Files that are gone because they were merged.
Moved == {file \in Files \ commits : \E id \in released : file \in Parts(id)}
\* A process that puts the next batch on record read the records of what may be gone after the last batch.
Views == {seen, released}
IsSettled == \A n \in Numbers : n > fence => records[n] = None
\* Whether the table passed over its last batch, and that is not on record. It comes to the record before anything else.
Untold == refused > 0 /\ refused = fence /\ refused \notin verdicts /\ Has("a refusal is on record before later batches")
\* Mergers, rebuilds and removers put the next batch on record.
Propose(batch) ==
    /\ IsSettled /\ fence < MaxBatches /\ ~Untold /\ Mergers # {}
    /\ records' = [records EXCEPT ![fence + 1] = batch]

-----------------------------------------------------------------------------
\* The change of a batch, as it is sent: the fence that it sets, the snapshot that it asserts, and what its sender found:
\* which merged files are there, and which files of commits were moved.
Change(n, batch, head) ==
    [number |-> n, batch |-> batch, snapshot |-> head, there |-> {batch.of, batch.left} \intersect disk, moved |-> Moved]
Holds(change) == change.snapshot = snapshot \/ ~Has("a change asserts the snapshot of the fence")

\* Files come and go. Merged files with rows of those that go are taken apart. A merged file goes in if it is there, and if
\* the table has exactly its parts, but for those that are gone because they were merged.
Take(change) ==
    LET batch == change.batch
        Passing(some) == some \ (IF Has("a table that is made again passes over what was moved") THEN change.moved ELSE {})
        isRebuild == batch.kind = "rebuild"
        gone == IF isRebuild THEN {<<batch.of, 1>>} ELSE {}
        new == IF isRebuild THEN {<<batch.of, 2>>}
               ELSE {file \in batch.adds \X {1} : Newest(file[1]) = 1 \/ file \in commits}
        apart == CASE batch.kind = "undo" -> {batch.of} \intersect merged
                   [] isRebuild /\ Has("a rebuild takes merged files apart") -> {a \in merged : Parts(a) \intersect gone # {}}
                   [] OTHER -> {}
        back == (UNION {Parts(a) : a \in apart}) \ gone
        id == IF batch.kind = "merge" THEN batch.of ELSE batch.left
        wanted == IF id = 0 THEN {} ELSE Parts(id)
        inputs == {other \in merged \ apart : Parts(other) \intersect wanted # {}}
        covered == (((Listed \ gone) \union back) \intersect wanted) \union UNION {Parts(other) : other \in inputs}
        isThere == id \in change.there \/ ~Has("a merged file that is gone changes nothing")
        isWhole == \/ covered \subseteq wanted /\ wanted \ covered \subseteq change.moved
                   \/ ~Has("a merged file takes the place of whole files of the table")
        goesIn == id # 0 /\ isThere /\ isWhole
        parts == IF goesIn THEN wanted ELSE {}
        come == Passing(new \union (back \ parts)) IN
    /\ snapshot < MaxSnapshots
    /\ snapshot' = snapshot + 1
    /\ fence' = change.number
    /\ own' = [file \in Files |->
                  (IF file \in gone \union parts THEN 0 ELSE own[file]) + (IF file \in come THEN 1 ELSE 0)]
    /\ merged' = ((merged \ apart) \ {other \in inputs : Parts(other) \subseteq parts}) \union (IF goesIn THEN {id} ELSE {})
    /\ kept' = kept \union merged
    /\ keptOwn' = IF Removes THEN keptOwn \union Listed ELSE {}
    /\ seen' = released
    /\ IF batch # None
       THEN applied' = Append(applied, change.number) /\ UNCHANGED refused
       ELSE /\ applied' = Append(applied, -change.number)
            /\ IF Has("the table says what it passed over") THEN refused' = change.number ELSE UNCHANGED refused

\* A merger, or an operator, applies what is on record. Drivers do so step by step.
Apply ==
    /\ Mergers # {} /\ ~IsSettled
    /\ Take(Change(fence + 1, records[fence + 1], snapshot))
    /\ UNCHANGED <<records, work, files, stops, proc>>

-----------------------------------------------------------------------------
\* A driver reads what is finished, once, when it begins, and then the table's head.
Begin(d) ==
    /\ At(d, "idle") /\ placed[d] # {}
    /\ Set(d, [proc[d] EXCEPT !.at = "begun", !.from = finished])
    /\ UNCHANGED shared

ReadHead(d) ==
    /\ At(d, "begun")
    /\ IF Untold
       THEN Set(d, [Idle EXCEPT !.at = "passed", !.fence = fence, !.from = proc[d].from, !.batch = records[fence]])
       ELSE Set(d, [proc[d] EXCEPT !.at = "read", !.fence = fence, !.snapshot = snapshot])
    /\ UNCHANGED shared

\* What the batches name that are not finished and that the table has.
Taken(n) == n \notin verdicts \/ ~Has("a refused batch names nothing")
Named(d) == UNION {records[n].adds : n \in {each \in Numbers : each > proc[d].from /\ each <= proc[d].fence /\ Taken(each)}}

\* Those of them that the driver placed are visible: it brings them to done.
Finish(d) ==
    /\ At(d, "read") /\ Named(d) \intersect placed[d] # {}
    /\ done' = done \union (Named(d) \intersect placed[d])
    /\ placed' = [placed EXCEPT ![d] = @ \ Named(d)]
    /\ UNCHANGED <<records, table, refusals, finished, sent, files, stops, proc>>

\* The batch after the fence is on record: the driver applies it, whoever recorded it.
FindRecord(d) ==
    /\ At(d, "read") /\ Next1(d) \in Numbers /\ records[Next1(d)] # None
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.batch = records[Next1(d)]])
    /\ UNCHANGED shared

\* No batch is on record. It chooses what no batch names and what is not done: what finished batches name is done.
\* What refused batches had goes on in smaller ones, and what is held back in none.
Fits(chosen) ==
    LET common == {n \in verdicts : records[n].adds \intersect chosen # {}} IN
    /\ chosen # {}
    /\ \/ ~Has("what refused batches had goes on in smaller ones")
       \/ \A n \in common : Cardinality(chosen) = 1 \/ 2 * Cardinality(chosen) <= Cardinality(records[n].adds)

Choose(d) ==
    LET unnamed == IF Has("a batch leaves out what earlier ones name") THEN placed[d] \ Named(d) ELSE placed[d]
        undone == IF Has("a batch omits done manifests") THEN unnamed \ done ELSE unnamed
        fresh == IF Has("a batch leaves out what is held back") THEN undone \ held ELSE undone IN
    /\ At(d, "read") /\ Next1(d) \in Numbers /\ records[Next1(d)] = None
    /\ \E chosen \in SUBSET fresh :
        /\ Fits(chosen)
        /\ Set(d, [proc[d] EXCEPT !.at = "record", !.chosen = chosen])
    /\ UNCHANGED shared

\* Others brought to done what it placed. Or that is held back, which is on record for an operator.
Forget(d) ==
    /\ At(d, "read") /\ placed[d] \intersect (done \union held) # {}
    /\ placed' = [placed EXCEPT ![d] = @ \ (done \union held)]
    /\ UNCHANGED <<records, table, refusals, done, finished, sent, files, stops, proc>>

Record(d) ==
    LET n == Next1(d)
        wins == records[n] = None \/ ~Has("a record is create-only")
        batch == IF wins THEN Adding(proc[d].chosen) ELSE records[n] IN
    /\ At(d, "record")
    /\ records' = [records EXCEPT ![n] = batch]
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.batch = batch, !.chosen = {}])
    /\ UNCHANGED <<table, work, files, stops>>

\* It is answered, or the answer is lost; either way the head is read next.
Deliver(d, batch) ==
    LET change == Change(Next1(d), batch, proc[d].snapshot) IN
    /\ At(d, "send")
    /\ \/ Holds(change) /\ Take(change) /\ UNCHANGED sent
       \/ sent' = sent \union {change} /\ UNCHANGED table
       \/ UNCHANGED <<table, sent>>
    /\ GoTo(d, "sent")
    /\ UNCHANGED <<placed, records, refusals, done, finished, files, stops>>

Send(d) == Deliver(d, proc[d].batch)

\* The catalog refuses the batch, though it may accept it at other times: the table is to pass over it.
IsBad(d) == At(d, "send") /\ proc[d].batch.adds \intersect Bad # {}
Pass(d) == IsBad(d) /\ Deliver(d, None)

\* It does not know what became of the change: the fence shows it, and what the table passed over.
Reread(d) ==
    LET isRefused == Next1(d) = refused \/ Next1(d) \in verdicts IN
    /\ At(d, "sent")
    /\ IF ~Has("the fence is read again after a change") THEN GoTo(d, "visible")
       ELSE IF fence >= Next1(d) /\ isRefused /\ Has("who sent a batch learns that it was refused")
            THEN Set(d, [proc[d] EXCEPT !.at = IF Next1(d) \in verdicts THEN "held" ELSE "passed",
                                        !.fence = Next1(d), !.snapshot = 0])
       ELSE IF fence >= Next1(d) THEN GoTo(d, "visible")
       ELSE Set(d, [proc[d] EXCEPT !.at = "send", !.fence = fence, !.snapshot = snapshot])
    /\ UNCHANGED shared

\* The client sends it again by itself, with the current head, and does not read the fence.
Retry(d) ==
    /\ At(d, "sent") /\ ~Has("no blind retry")
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.snapshot = snapshot])
    /\ UNCHANGED shared

\* If the batch had one manifest, that is held back. Then the refusal goes on record, once. A late driver may hold back a
\* manifest that was released meanwhile; that is on record, too.
Hold(d) ==
    /\ At(d, "passed")
    /\ held' = IF Cardinality(proc[d].batch.adds) = 1 THEN held \union proc[d].batch.adds ELSE held
    /\ GoTo(d, "held")
    /\ UNCHANGED <<placed, records, table, verdicts, done, finished, sent, files, stops>>

Judge(d) ==
    /\ At(d, "held")
    /\ verdicts' = verdicts \union {proc[d].fence}
    /\ Set(d, [Idle EXCEPT !.at = "begun", !.from = proc[d].from])
    /\ UNCHANGED <<placed, records, table, held, done, finished, sent, files, stops>>

\* Done comes after visible.
Done(d) ==
    /\ At(d, "visible") \/ (At(d, "send") /\ ~Has("done comes after the commit"))
    /\ done' = done \union (proc[d].batch.adds \intersect placed[d])
    /\ placed' = [placed EXCEPT ![d] = @ \ proc[d].batch.adds]
    /\ Set(d, [Idle EXCEPT !.at = "noting", !.fence = Next1(d), !.from = proc[d].from])
    /\ UNCHANGED <<records, table, refusals, finished, sent, files, stops>>

\* It notes up to which batch all manifests are done. Another driver may have noted a later one.
Note(d) ==
    LET settled == {n \in Numbers : n \in verdicts \/ records[n].adds \subseteq done}
        all == {n \in Numbers : n <= proc[d].fence /\ 1..n \subseteq settled}
        upto == IF Has("a batch is finished once its manifests are done") THEN all ELSE {proc[d].fence} IN
    /\ At(d, "noting")
    /\ finished' \in {finished} \union upto
    /\ Set(d, Idle)
    /\ UNCHANGED <<placed, records, table, refusals, done, sent, files, stops>>

\* A change that was sent lands, perhaps after its driver is gone.
Land ==
    \E change \in sent :
        /\ sent' = sent \ {change}
        /\ IF Holds(change) THEN Take(change) ELSE UNCHANGED table
        /\ UNCHANGED <<placed, records, refusals, done, finished, files, stops, proc>>

\* Another program compacts files or expires snapshots.
Rewrite ==
    /\ Drivers # {} /\ snapshot < MaxSnapshots - 1 /\ stops < MaxStops
    /\ snapshot' = snapshot + 1
    /\ stops' = stops + 1
    /\ UNCHANGED <<records, fence, own, merged, snapshots, seen, refused, applied, work, files, proc>>

\* A driver or merger dies. Another driver begins in its place, which finds what is not done.
Stop(p) ==
    /\ ~At(p, "idle") /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ placed' = [d \in Drivers |-> IF d = p THEN Manifests \ done ELSE placed[d]]
    /\ Set(p, Idle)
    /\ UNCHANGED <<records, table, refusals, done, finished, sent, files>>

\* An operator releases a manifest: a driver places it again, and batches may have it.
Release ==
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ \E m \in held \ done, d \in Drivers :
        /\ held' = held \ {m}
        /\ placed' = [placed EXCEPT ![d] = @ \union {m}]
    /\ UNCHANGED <<records, table, verdicts, done, finished, sent, files, proc>>

-----------------------------------------------------------------------------
\* A merger applies what is on record, and chooses files that the table has: some of commits, and some merged ones.
ChooseFiles(p) ==
    /\ At(p, "idle") /\ IsSettled /\ Len(merges) < MaxMerges
    /\ \E some \in SUBSET Listed, others \in SUBSET merged :
        /\ Cardinality(some) + Cardinality(others) >= 2
        /\ Set(p, [Idle EXCEPT !.at = "chosen", !.fence = fence, !.inputs = others,
                               !.chosen = some \union UNION {Parts(id) : id \in others}])
    /\ UNCHANGED shared

\* A new merged file, which is written and verified before its merge is on record.
WriteMerge(base, parts) ==
    /\ Len(merges) < MaxMerges
    /\ merges' = Append(merges, [base |-> base, parts |-> parts])
    /\ disk' = disk \union {Len(merges) + 1}

\* If the parts of an input may be gone, it first puts on record that those of the new file may be. If a file is gone, it
\* gives up.
Merge(p) ==
    LET inputs == proc[p].inputs
        itself == proc[p].chosen \ UNION {Parts(id) : id \in inputs}
        inherits == inputs \intersect released # {} /\ Has("a merged file of parts that may be gone is on record") IN
    /\ At(p, "chosen")
    /\ IF itself \subseteq commits /\ inputs \subseteq disk /\ Len(merges) < MaxMerges
       THEN /\ WriteMerge(proc[p].fence, proc[p].chosen)
            /\ released' = IF inherits THEN released \union {Len(merges) + 1} ELSE released
            /\ Set(p, [Idle EXCEPT !.at = "written", !.fence = proc[p].fence, !.id = Len(merges) + 1])
       ELSE Set(p, Idle) /\ UNCHANGED <<merges, disk, released>>
    /\ UNCHANGED <<records, table, work, commits, going, rem, stops>>

\* It puts the batch on record, or gives up, and then removes the file.
ProposeMerge(p) ==
    /\ At(p, "written") /\ IsSettled
    /\ IF Ended(proc[p].fence) /\ Has("a merge is never applied once other files were replaced")
       THEN disk' = disk \ {proc[p].id} /\ released' = released \ {proc[p].id} /\ UNCHANGED records
       ELSE Propose(Batch("merge", proc[p].id)) /\ UNCHANGED <<disk, released>>
    /\ Set(p, Idle)
    /\ UNCHANGED <<table, work, merges, commits, going, rem, stops>>

\* A rebuilt manifest, whose new file is in its place. Where a merged file has rows of the one before, and its other parts
\* may be gone, these are written to one more merged file, which goes in by the same batch.
Rebuild(m) ==
    /\ m \in done /\ Newest(m) = 1
    /\ commits' = commits \union {<<m, 2>>}
    /\ \E view \in Views :
        LET holders == {id \in merged \intersect view : <<m, 1>> \in Parts(id)}
            parts == (UNION {Parts(id) : id \in holders}) \ {<<m, 1>>} IN
        IF parts # {} /\ Has("a rebuild writes anew what is left where parts may be gone")
        THEN /\ WriteMerge(fence, parts)
             /\ released' = released \union {Len(merges) + 1}
             /\ Propose([Batch("rebuild", m) EXCEPT !.left = Len(merges) + 1])
        ELSE Propose(Batch("rebuild", m)) /\ UNCHANGED <<merges, disk, released>>
    /\ UNCHANGED <<table, work, going, rem, stops, proc>>

\* An operator takes a merged file apart.
Undo ==
    /\ \E id \in merged, view \in Views :
        /\ id \notin view \/ ~Has("no file whose parts may be gone is taken apart")
        /\ Propose(Batch("undo", id))
    /\ UNCHANGED <<table, work, files, stops, proc>>

ExpireSnapshots ==
    /\ snapshots # <<{}, {}>>
    /\ kept' = {} /\ keptOwn' = {}
    /\ UNCHANGED <<records, fence, snapshot, own, merged, seen, refused, applied, work, files, stops, proc>>

\* Once the table has a rebuilt manifest, the file before is deleted.
DeleteReplaced(m) ==
    /\ <<m, 2>> \in Listed /\ <<m, 1>> \in commits
    /\ commits' = commits \ {<<m, 1>>}
    /\ UNCHANGED <<records, table, work, merges, disk, released, going, rem, stops, proc>>

\* The remover of files of commits: it finds a merged file of the table whose parts no snapshot has, and records it.
FindMerged ==
    /\ Removes /\ rem.at = "idle"
    /\ \E id \in merged :
        /\ Parts(id) \intersect commits # {}
        /\ Parts(id) \intersect (Listed \union keptOwn) = {} \/ ~Has("parts stay as long as a snapshot has them")
        /\ rem' = [NoRemoval EXCEPT !.at = "recorded", !.id = id]
        /\ released' = IF Has("it is on record that parts may be gone") THEN released \union {id} ELSE released
    /\ UNCHANGED <<records, table, work, merges, disk, commits, going, stops, proc>>

\* If the table still has the merged file, the next batch says so. It changes nothing but the fence.
ReleaseParts ==
    /\ rem.at = "recorded" /\ IsSettled
    /\ IF rem.id \in merged \/ ~Has("parts go if the table has the merged file")
       THEN IF Has("a batch says that parts may go")
            THEN Propose(Batch("release", rem.id)) /\ rem' = [rem EXCEPT !.at = "released", !.number = fence + 1]
            ELSE rem' = [rem EXCEPT !.at = "released", !.number = fence] /\ UNCHANGED records
       ELSE rem' = NoRemoval /\ UNCHANGED records
    /\ UNCHANGED <<table, work, merges, disk, commits, released, going, stops, proc>>

\* It deletes the parts, one after the other.
RemovePart ==
    /\ rem.at = "released" /\ fence >= rem.number
    /\ \E file \in Parts(rem.id) \intersect commits :
        /\ commits' = commits \ {file}
        /\ rem' = IF Parts(rem.id) \intersect commits = {file} THEN NoRemoval ELSE rem
    /\ UNCHANGED <<records, table, work, merges, disk, released, going, stops, proc>>

\* The remover of merged files looks for those that nothing needs, and removes them later.
FindLeftovers ==
    LET mayGo == {id \in disk \ going : Ended(merges[id].base) \/ ~Has("merged files stay as long as the table may get them")}
        needed == merged \union (IF Has("merged files stay as long as a snapshot has them") THEN kept ELSE {}) IN
    /\ going' = mayGo \ needed
    /\ going' # going
    /\ UNCHANGED <<records, table, work, merges, disk, commits, released, rem, stops, proc>>

RemoveMerged ==
    /\ \E id \in going : disk' = disk \ {id} /\ going' = going \ {id} /\ released' = released \ {id}
    /\ UNCHANGED <<records, table, work, merges, commits, rem, stops, proc>>

StopRemoval ==
    /\ rem.at # "idle" /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ rem' = NoRemoval
    /\ UNCHANGED <<records, table, work, merges, disk, commits, released, going, proc>>

\* The table is lost, with its snapshots.
Lose ==
    /\ Drivers = {} /\ stops < MaxStops /\ going = {} /\ rem.at = "idle"
    /\ stops' = stops + 1
    /\ fence' = 0 /\ snapshot' = 0 /\ own' = [file \in Files |-> 0] /\ merged' = {} /\ kept' = {} /\ keptOwn' = {}
    /\ seen' = released /\ refused' = 0 /\ applied' = <<>>
    /\ UNCHANGED <<records, work, files, proc>>

Next ==
    \/ Apply \/ Land \/ Rewrite \/ Release \/ Undo \/ ExpireSnapshots \/ FindLeftovers \/ RemoveMerged \/ Lose
    \/ FindMerged \/ ReleaseParts \/ RemovePart \/ StopRemoval
    \/ \E d \in Drivers :
        \/ Begin(d) \/ ReadHead(d) \/ Finish(d) \/ FindRecord(d) \/ Choose(d) \/ Forget(d) \/ Record(d)
        \/ Send(d) \/ Pass(d) \/ Reread(d) \/ Retry(d) \/ Hold(d) \/ Judge(d) \/ Done(d) \/ Note(d)
    \/ \E p \in Mergers : ChooseFiles(p) \/ Merge(p) \/ ProposeMerge(p)
    \/ \E p \in Processes : Stop(p)
    \/ \E m \in Manifests : Rebuild(m) \/ DeleteReplaced(m)

Spec == Init /\ [][Next]_vars

\* Answers come in the end, and who reads goes on.
FairSpec ==
    /\ Spec
    /\ WF_vars(Apply)
    /\ \A d \in Drivers :
        /\ WF_vars(Begin(d)) /\ WF_vars(ReadHead(d)) /\ WF_vars(Finish(d)) /\ WF_vars(FindRecord(d))
        /\ WF_vars(Choose(d)) /\ WF_vars(Forget(d)) /\ WF_vars(Record(d))
        /\ SF_vars(Send(d) /\ ~IsBad(d) /\ fence' = Next1(d)) /\ SF_vars(Pass(d) /\ fence' = Next1(d))
        /\ WF_vars(Send(d)) /\ WF_vars(Reread(d)) /\ WF_vars(Hold(d)) /\ WF_vars(Judge(d)) /\ WF_vars(Done(d))
        /\ WF_vars(Note(d))

-----------------------------------------------------------------------------
TypesHold ==
    /\ fence \in 0..MaxBatches /\ snapshot \in 0..MaxSnapshots /\ finished \in 0..MaxBatches
    /\ Listed \union commits \union keptOwn \subseteq Files
    /\ merged \union disk \union released \union seen \subseteq Ids

\* How often the table has rows of a manifest, of any generation.
Times(m) ==
    own[<<m, 1>>] + own[<<m, 2>>] + Cardinality({<<id, file>> \in merged \X Files : file \in Parts(id) /\ file[1] = m})

\* Whatever answers are lost or late, the rows of a manifest are in the table once at most.
AnEffectOnce == \A m \in Manifests : Times(m) <= 1

\* The fence is the number of the batches that took effect or were passed over, each of them once and in order.
FenceCounts == Len(applied) = fence /\ \A n \in 1..Len(applied) : applied[n] \in {n, -n}

\* What is on record as refused never takes effect, however late; and what was passed over is on record, or comes to it
\* before any later batch.
RefusedStaysOut ==
    /\ \A n \in verdicts : n <= fence /\ applied[n] = -n
    /\ \A n \in 1..Len(applied) :
        applied[n] < 0 /\ n \notin verdicts => n = fence /\ \A later \in Numbers : later > n => records[later] = None

\* What is done is visible, but for a table that is being made again; and what is visible is as it was recorded.
DoneIsVisible == \A m \in done : Times(m) = 1 \/ (Drivers = {} /\ ~IsSettled)
VisibleIsRecorded == \A m \in Manifests : Times(m) > 0 => \E n \in 1..fence : m \in records[n].adds /\ applied[n] = n

\* A manifest is in one batch that is not refused, and batches have no gaps.
OneBatchEach == \A m \in Manifests : Cardinality({n \in Numbers \ (verdicts \union {refused}) : m \in records[n].adds}) <= 1
NoGaps == \A n \in Numbers : n > 1 /\ records[n] # None => records[n - 1] # None /\ (fence >= n - 1 \/ Drivers = {})

\* No manifest is forgotten: one that is not done waits with a driver, or is held back, which is on record.
NothingForgotten == \A m \in Manifests : m \in done \union held \/ \E d \in Drivers : m \in placed[d]

\* A record never changes.
RecordsStay == [][\A n \in Numbers : records[n] # None => records'[n] = records[n]]_vars

\* Only the bad ones are held back.
HeldIsBad == held \subseteq Bad

\* The table has each manifest that is done, as it is by the batches on record.
EachIsThere ==
    IsSettled => \A m \in done : <<m, Newest(m)>> \in Listed \/ \E id \in merged : <<m, Newest(m)>> \in Parts(id)

\* What the table lists is there, and what its snapshots list, but for files that a rebuild replaced.
NothingIsLost ==
    /\ Listed \subseteq commits /\ merged \subseteq disk /\ kept \subseteq disk
    /\ \A file \in keptOwn : file \in commits \/ file[2] < Newest(file[1])

\* A reader of the ledger finds the rows of each manifest: in its file, or in a merged one that is on record for that.
RowsAreFound ==
    \A m \in Manifests :
        LET file == <<m, Newest(m)>> IN
        file \in commits \/ \E id \in released \intersect disk : file \in Parts(id)

\* What is on record takes effect, and each manifest is visible and done in the end, but for bad ones, which may be held back.
EachTakesEffect == []<>IsSettled /\ <>(done \union held = Manifests /\ Manifests \ Bad \subseteq done)
=============================================================================
