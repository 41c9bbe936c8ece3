------------------------------- MODULE Table -------------------------------
(* How placed manifests become visible in a table: numbered batches on record, and one change of the table for each.  *)
(* Drivers work at the same time. Each may be held up at any step for as long as it takes, or stop there: it dies.     *)
(* The answer to a change may be lost, before or after it took effect, and a change may land long after it was sent.   *)
(* Another program changes the table meanwhile, too. A snapshot has one file for each generation of a manifest.         *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Manifests, Drivers, MaxBatches, MaxSnapshots, MaxStops, Guards

Numbers == 1..MaxBatches
Has(guard) == guard \in Guards

VARIABLES
    placed,   \* of each driver: the manifests that it placed and does not know to be done
    records,  \* the manifests of each batch on record; {} for none
    fence,    \* a property of the table: the last batch that it took
    snapshot, \* its current snapshot
    live,     \* how often each manifest's files are in it
    done,
    finished, \* up to which batch all manifests are done, as it is on record
    sent,     \* changes that may still land
    applied,  \* the batches that took effect, in order
    stops,
    proc      \* each driver: its step, the head and the record that it read, what it chose, and how far it has read

vars == <<placed, records, fence, snapshot, live, done, finished, sent, applied, stops, proc>>
table == <<fence, snapshot, live, applied>>

Idle == [at |-> "idle", fence |-> 0, snapshot |-> 0, from |-> 0, batch |-> {}, chosen |-> {}]

Init ==
    \* A manifest may be placed by several drivers: one that died, and those that go on with its work.
    /\ placed \in {held \in [Drivers -> SUBSET Manifests] : UNION {held[d] : d \in Drivers} = Manifests}
    /\ records = [n \in Numbers |-> {}]
    /\ fence = 0
    /\ snapshot = 0
    /\ live = [m \in Manifests |-> 0]
    /\ done = {}
    /\ finished = 0
    /\ sent = {}
    /\ applied = <<>>
    /\ stops = 0
    /\ proc = [d \in Drivers |-> Idle]

At(d, step) == proc[d].at = step
Set(d, changed) == proc' = [proc EXCEPT ![d] = changed]
GoTo(d, step) == Set(d, [proc[d] EXCEPT !.at = step])
Next1(d) == proc[d].fence + 1

-----------------------------------------------------------------------------
\* It reads what is finished, once, when it begins, and then the table's head.
Begin(d) ==
    /\ At(d, "idle") /\ placed[d] # {}
    /\ Set(d, [proc[d] EXCEPT !.at = "begun", !.from = finished])
    /\ UNCHANGED <<placed, records, table, done, finished, sent, stops>>

ReadHead(d) ==
    /\ At(d, "begun")
    /\ Set(d, [proc[d] EXCEPT !.at = "read", !.fence = fence, !.snapshot = snapshot])
    /\ UNCHANGED <<placed, records, table, done, finished, sent, stops>>

\* What the batches name that are not finished and that the table has.
Named(d) == UNION {records[n] : n \in {each \in Numbers : each > proc[d].from /\ each <= proc[d].fence}}

\* Those of them that it placed are visible: it brings them to done.
Finish(d) ==
    /\ At(d, "read") /\ Named(d) \intersect placed[d] # {}
    /\ done' = done \union (Named(d) \intersect placed[d])
    /\ placed' = [placed EXCEPT ![d] = @ \ Named(d)]
    /\ UNCHANGED <<records, table, finished, sent, stops, proc>>

\* The batch after the fence is on record: it applies that one, whoever recorded it.
FindRecord(d) ==
    /\ At(d, "read") /\ Next1(d) \in Numbers /\ records[Next1(d)] # {}
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.batch = records[Next1(d)]])
    /\ UNCHANGED <<placed, records, table, done, finished, sent, stops>>

\* None is. It chooses what no batch names, and then what is not done: what finished batches name is done.
Choose(d) ==
    LET unnamed == IF Has("a batch leaves out what earlier ones name") THEN placed[d] \ Named(d) ELSE placed[d]
        fresh == IF Has("a batch leaves out what is done") THEN unnamed \ done ELSE unnamed IN
    /\ At(d, "read") /\ Next1(d) \in Numbers /\ records[Next1(d)] = {}
    /\ \E chosen \in SUBSET fresh :
        /\ chosen # {}
        /\ Set(d, [proc[d] EXCEPT !.at = "record", !.chosen = chosen])
    /\ UNCHANGED <<placed, records, table, done, finished, sent, stops>>

\* What it placed is done: others did it.
Forget(d) ==
    /\ At(d, "read") /\ placed[d] \intersect done # {}
    /\ placed' = [placed EXCEPT ![d] = @ \ done]
    /\ UNCHANGED <<records, table, done, finished, sent, stops, proc>>

Record(d) ==
    LET n == Next1(d)
        wins == records[n] = {} \/ ~Has("a record is create-only")
        batch == IF wins THEN proc[d].chosen ELSE records[n] IN
    /\ At(d, "record")
    /\ records' = [records EXCEPT ![n] = batch]
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.batch = batch, !.chosen = {}])
    /\ UNCHANGED <<placed, table, done, finished, sent, stops>>

\* The change of a batch, as it is sent: the fence that it sets, and the snapshot that it asserts.
Change(d) == [batch |-> Next1(d), files |-> proc[d].batch, snapshot |-> proc[d].snapshot]
Holds(change) == change.snapshot = snapshot \/ ~Has("a change asserts the snapshot of the fence")

Take(change) ==
    /\ snapshot < MaxSnapshots
    /\ live' = [m \in Manifests |-> live[m] + (IF m \in change.files THEN 1 ELSE 0)]
    /\ fence' = change.batch
    /\ snapshot' = snapshot + 1
    /\ applied' = Append(applied, change.batch)

\* It is answered, or the answer is lost; either way the head is read next.
Send(d) ==
    /\ At(d, "send")
    /\ \/ Holds(Change(d)) /\ Take(Change(d)) /\ UNCHANGED sent
       \/ sent' = sent \union {Change(d)} /\ UNCHANGED table
       \/ UNCHANGED <<table, sent>>
    /\ GoTo(d, "sent")
    /\ UNCHANGED <<placed, records, done, finished, stops>>

\* Nothing is known of it: the fence tells.
Reread(d) ==
    /\ At(d, "sent")
    /\ IF ~Has("the fence is read again after a change") THEN Set(d, [proc[d] EXCEPT !.at = "visible"])
       ELSE IF fence >= Next1(d) THEN GoTo(d, "visible")
       ELSE Set(d, [proc[d] EXCEPT !.at = "send", !.fence = fence, !.snapshot = snapshot])
    /\ UNCHANGED <<placed, records, table, done, finished, sent, stops>>

\* The client sends it again by itself, with the head of now and without a look at the fence.
Retry(d) ==
    /\ At(d, "sent") /\ ~Has("no blind retry")
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.snapshot = snapshot])
    /\ UNCHANGED <<placed, records, table, done, finished, sent, stops>>

\* Done comes after visible.
Done(d) ==
    /\ At(d, "visible") \/ (At(d, "send") /\ ~Has("done comes after the commit"))
    /\ done' = done \union (proc[d].batch \intersect placed[d])
    /\ placed' = [placed EXCEPT ![d] = @ \ proc[d].batch]
    /\ Set(d, [Idle EXCEPT !.at = "noting", !.fence = Next1(d), !.from = proc[d].from])
    /\ UNCHANGED <<records, table, finished, sent, stops>>

\* It notes up to which batch all manifests are done. The note may be older than one of another driver.
Note(d) ==
    LET all == {n \in Numbers : n <= proc[d].fence /\ \A each \in 1..n : records[each] \subseteq done}
        upto == IF Has("a batch is finished once its manifests are done") THEN all ELSE {proc[d].fence} IN
    /\ At(d, "noting")
    /\ finished' \in {finished} \union upto
    /\ Set(d, [Idle EXCEPT !.from = 0])
    /\ UNCHANGED <<placed, records, table, done, sent, stops>>

-----------------------------------------------------------------------------
\* A change that was sent lands, perhaps after its driver is gone.
Land ==
    \E change \in sent :
        /\ sent' = sent \ {change}
        /\ IF Holds(change) THEN Take(change) ELSE UNCHANGED table
        /\ UNCHANGED <<placed, records, done, finished, stops, proc>>

\* Another program compacts files or expires snapshots.
Rewrite ==
    /\ snapshot < MaxSnapshots - 1 /\ stops < MaxStops
    /\ snapshot' = snapshot + 1
    /\ stops' = stops + 1
    /\ UNCHANGED <<placed, records, fence, live, done, finished, sent, applied, proc>>

\* A driver dies; another process begins in its place, which finds what is not done.
Stop(d) ==
    /\ ~At(d, "idle") /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ placed' = [placed EXCEPT ![d] = Manifests \ done]
    /\ Set(d, Idle)
    /\ UNCHANGED <<records, table, done, finished, sent>>

Next ==
    \/ Land \/ Rewrite
    \/ \E d \in Drivers :
        \/ Begin(d) \/ ReadHead(d) \/ Finish(d) \/ FindRecord(d) \/ Choose(d) \/ Forget(d) \/ Record(d)
        \/ Send(d) \/ Reread(d) \/ Retry(d) \/ Done(d) \/ Note(d) \/ Stop(d)

Spec == Init /\ [][Next]_vars

\* Answers come in the end, and who reads goes on.
FairSpec ==
    /\ Spec
    /\ \A d \in Drivers :
        /\ WF_vars(Begin(d)) /\ WF_vars(ReadHead(d)) /\ WF_vars(Finish(d)) /\ WF_vars(FindRecord(d))
        /\ WF_vars(Choose(d)) /\ WF_vars(Forget(d)) /\ WF_vars(Record(d))
        /\ SF_vars(Send(d) /\ fence' = Next1(d)) /\ WF_vars(Send(d)) /\ WF_vars(Reread(d)) /\ WF_vars(Done(d))
        /\ WF_vars(Note(d))

-----------------------------------------------------------------------------
TypesHold == fence \in 0..MaxBatches /\ snapshot \in 0..MaxSnapshots /\ finished \in 0..MaxBatches

\* Whatever answers are lost or late, the files of a manifest are in the table once at most.
AnEffectOnce == \A m \in Manifests : live[m] <= 1

\* The fence is the number of the batches that took effect, each of them once and in order.
FenceCounts == Len(applied) = fence /\ \A n \in 1..Len(applied) : applied[n] = n

\* What is done is visible, and what is visible is as it was recorded.
DoneIsVisible == \A m \in done : live[m] = 1
VisibleIsRecorded == \A m \in Manifests : live[m] > 0 => \E n \in 1..fence : m \in records[n]

\* A manifest is in one batch, and batches have no gaps.
OneBatchEach == \A m \in Manifests : Cardinality({n \in Numbers : m \in records[n]}) <= 1
NoGaps == \A n \in Numbers : n > 1 /\ records[n] # {} => records[n - 1] # {} /\ fence >= n - 1

\* No manifest is forgotten: one that is not done waits with a driver.
NothingForgotten == \A m \in Manifests : m \in done \/ \E d \in Drivers : m \in placed[d]

\* A record never changes.
RecordsStay == [][\A n \in Numbers : records[n] # {} => records'[n] = records[n]]_vars

\* Each manifest is visible and done in the end.
EachIsVisible == <>(done = Manifests)
=============================================================================
