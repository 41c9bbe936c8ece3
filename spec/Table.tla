------------------------------- MODULE Table -------------------------------
(* How placed manifests become visible in a table: numbered batches on record, and one change of the table for each.  *)
(* Drivers work at the same time. Each may be held up at any step for as long as it takes, or stop there: it dies.     *)
(* The answer to a change may be lost, before or after it took effect, and a change may land long after it was sent.   *)
(* Another program changes the table meanwhile, too. A snapshot has one file for each generation of a manifest.         *)
(* The catalog may refuse a batch for ever because of a manifest. Then the table passes over the batch, by a change    *)
(* without files; its manifests go on in smaller batches, and one that was alone is held back until it is released.    *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Manifests, Bad, Drivers, MaxBatches, MaxSnapshots, MaxStops, Guards

Numbers == 1..MaxBatches
Has(guard) == guard \in Guards

VARIABLES
    placed,   \* of each driver: the manifests that it placed and does not know to be done
    records,  \* the manifests of each batch on record; {} for none
    fence,    \* a property of the table: the last batch that it took
    snapshot, \* its current snapshot
    live,     \* how often each manifest's files are in it
    refused,  \* a property, too: the last batch that it passed over
    verdicts, \* the batches that are on record as refused
    held,     \* the manifests that are held back, by a record of their own
    done,
    finished, \* up to which batch all manifests are done, as it is on record
    sent,     \* changes that may still land
    applied,  \* the batches that the table took, in order; with a minus, those that it passed over
    stops,
    proc      \* each driver: its step, the head and the record that it read, what it chose, and how far it has read

table == <<fence, snapshot, live, refused, applied>>
refusals == <<verdicts, held>>
vars == <<placed, records, table, refusals, done, finished, sent, stops, proc>>

Idle == [at |-> "idle", fence |-> 0, snapshot |-> 0, from |-> 0, batch |-> {}, chosen |-> {}]

Init ==
    \* A manifest may be placed by several drivers: one that died, and those that go on with its work.
    /\ placed \in {begun \in [Drivers -> SUBSET Manifests] : UNION {begun[d] : d \in Drivers} = Manifests}
    /\ records = [n \in Numbers |-> {}]
    /\ fence = 0
    /\ snapshot = 0
    /\ live = [m \in Manifests |-> 0]
    /\ refused = 0
    /\ verdicts = {}
    /\ held = {}
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
    /\ UNCHANGED <<placed, records, table, refusals, done, finished, sent, stops>>

\* What the table passed over last is put on record before anything else.
ReadHead(d) ==
    LET untold == refused > 0 /\ refused = fence /\ refused \notin verdicts IN
    /\ At(d, "begun")
    /\ IF untold /\ Has("a refusal is on record before later batches")
       THEN Set(d, [Idle EXCEPT !.at = "passed", !.fence = fence, !.from = proc[d].from, !.batch = records[fence]])
       ELSE Set(d, [proc[d] EXCEPT !.at = "read", !.fence = fence, !.snapshot = snapshot])
    /\ UNCHANGED <<placed, records, table, refusals, done, finished, sent, stops>>

\* What the batches name that are not finished and that the table has.
Taken(n) == n \notin verdicts \/ ~Has("a refused batch names nothing")
Named(d) == UNION {records[n] : n \in {each \in Numbers : each > proc[d].from /\ each <= proc[d].fence /\ Taken(each)}}

\* Those of them that it placed are visible: it brings them to done.
Finish(d) ==
    /\ At(d, "read") /\ Named(d) \intersect placed[d] # {}
    /\ done' = done \union (Named(d) \intersect placed[d])
    /\ placed' = [placed EXCEPT ![d] = @ \ Named(d)]
    /\ UNCHANGED <<records, table, refusals, finished, sent, stops, proc>>

\* The batch after the fence is on record: it applies that one, whoever recorded it.
FindRecord(d) ==
    /\ At(d, "read") /\ Next1(d) \in Numbers /\ records[Next1(d)] # {}
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.batch = records[Next1(d)]])
    /\ UNCHANGED <<placed, records, table, refusals, done, finished, sent, stops>>

\* None is. It chooses what no batch names, and then what is not done: what finished batches name is done.
\* What refused batches had goes on in smaller ones, and what is held back in none.
Fits(chosen) ==
    LET shared == {n \in verdicts : records[n] \intersect chosen # {}} IN
    /\ chosen # {}
    /\ \/ ~Has("what refused batches had goes on in smaller ones")
       \/ \A n \in shared : Cardinality(chosen) = 1 \/ 2 * Cardinality(chosen) <= Cardinality(records[n])

Choose(d) ==
    LET unnamed == IF Has("a batch leaves out what earlier ones name") THEN placed[d] \ Named(d) ELSE placed[d]
        undone == IF Has("a batch leaves out what is done") THEN unnamed \ done ELSE unnamed
        fresh == IF Has("a batch leaves out what is held back") THEN undone \ held ELSE undone IN
    /\ At(d, "read") /\ Next1(d) \in Numbers /\ records[Next1(d)] = {}
    /\ \E chosen \in SUBSET fresh :
        /\ Fits(chosen)
        /\ Set(d, [proc[d] EXCEPT !.at = "record", !.chosen = chosen])
    /\ UNCHANGED <<placed, records, table, refusals, done, finished, sent, stops>>

\* What it placed is done: others did it. Or it is held back, as is on record for an operator.
Forget(d) ==
    /\ At(d, "read") /\ placed[d] \intersect (done \union held) # {}
    /\ placed' = [placed EXCEPT ![d] = @ \ (done \union held)]
    /\ UNCHANGED <<records, table, refusals, done, finished, sent, stops, proc>>

Record(d) ==
    LET n == Next1(d)
        wins == records[n] = {} \/ ~Has("a record is create-only")
        batch == IF wins THEN proc[d].chosen ELSE records[n] IN
    /\ At(d, "record")
    /\ records' = [records EXCEPT ![n] = batch]
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.batch = batch, !.chosen = {}])
    /\ UNCHANGED <<placed, table, refusals, done, finished, sent, stops>>

\* The change of a batch, as it is sent: the fence that it sets, and the snapshot that it asserts.
Change(d) == [batch |-> Next1(d), files |-> proc[d].batch, snapshot |-> proc[d].snapshot]
Passing(d) == [Change(d) EXCEPT !.files = {}]
Holds(change) == change.snapshot = snapshot \/ ~Has("a change asserts the snapshot of the fence")

Take(change) ==
    /\ snapshot < MaxSnapshots
    /\ live' = [m \in Manifests |-> live[m] + (IF m \in change.files THEN 1 ELSE 0)]
    /\ fence' = change.batch
    /\ snapshot' = snapshot + 1
    /\ IF change.files # {}
       THEN applied' = Append(applied, change.batch) /\ UNCHANGED refused
       ELSE /\ applied' = Append(applied, -change.batch)
            /\ IF Has("the table says what it passed over") THEN refused' = change.batch ELSE UNCHANGED refused

\* It is answered, or the answer is lost; either way the head is read next.
Deliver(d, change) ==
    /\ At(d, "send")
    /\ \/ Holds(change) /\ Take(change) /\ UNCHANGED sent
       \/ sent' = sent \union {change} /\ UNCHANGED table
       \/ UNCHANGED <<table, sent>>
    /\ GoTo(d, "sent")
    /\ UNCHANGED <<placed, records, refusals, done, finished, stops>>

Send(d) == Deliver(d, Change(d))

\* The catalog refuses the batch, as it may at any time, and take it at others: the table is to pass over it.
IsBad(d) == proc[d].batch \intersect Bad # {}
Pass(d) == IsBad(d) /\ Deliver(d, Passing(d))

\* Nothing is known of it: the fence tells, and what the table passed over.
Reread(d) ==
    LET isRefused == Next1(d) = refused \/ Next1(d) \in verdicts IN
    /\ At(d, "sent")
    /\ IF ~Has("the fence is read again after a change") THEN Set(d, [proc[d] EXCEPT !.at = "visible"])
       ELSE IF fence >= Next1(d) /\ isRefused /\ Has("who sent a batch learns that it was refused")
            THEN Set(d, [proc[d] EXCEPT !.at = IF Next1(d) \in verdicts THEN "held" ELSE "passed",
                                        !.fence = Next1(d), !.snapshot = 0])
       ELSE IF fence >= Next1(d) THEN GoTo(d, "visible")
       ELSE Set(d, [proc[d] EXCEPT !.at = "send", !.fence = fence, !.snapshot = snapshot])
    /\ UNCHANGED <<placed, records, table, refusals, done, finished, sent, stops>>

\* The client sends it again by itself, with the head of now and without a look at the fence.
Retry(d) ==
    /\ At(d, "sent") /\ ~Has("no blind retry")
    /\ Set(d, [proc[d] EXCEPT !.at = "send", !.snapshot = snapshot])
    /\ UNCHANGED <<placed, records, table, refusals, done, finished, sent, stops>>

\* The manifest of a batch that had no other is held back, and then the refusal is on record, once. Who is late with it
\* may hold back what was released meanwhile, and that is on record, too.
Hold(d) ==
    /\ At(d, "passed")
    /\ held' = IF Cardinality(proc[d].batch) = 1 THEN held \union proc[d].batch ELSE held
    /\ GoTo(d, "held")
    /\ UNCHANGED <<placed, records, table, verdicts, done, finished, sent, stops>>

Judge(d) ==
    /\ At(d, "held")
    /\ verdicts' = verdicts \union {proc[d].fence}
    /\ Set(d, [Idle EXCEPT !.at = "begun", !.from = proc[d].from])
    /\ UNCHANGED <<placed, records, table, held, done, finished, sent, stops>>

\* Done comes after visible.
Done(d) ==
    /\ At(d, "visible") \/ (At(d, "send") /\ ~Has("done comes after the commit"))
    /\ done' = done \union (proc[d].batch \intersect placed[d])
    /\ placed' = [placed EXCEPT ![d] = @ \ proc[d].batch]
    /\ Set(d, [Idle EXCEPT !.at = "noting", !.fence = Next1(d), !.from = proc[d].from])
    /\ UNCHANGED <<records, table, refusals, finished, sent, stops>>

\* It notes up to which batch all manifests are done. The note may be older than one of another driver.
Note(d) ==
    LET settled == {n \in Numbers : n \in verdicts \/ records[n] \subseteq done}
        all == {n \in Numbers : n <= proc[d].fence /\ 1..n \subseteq settled}
        upto == IF Has("a batch is finished once its manifests are done") THEN all ELSE {proc[d].fence} IN
    /\ At(d, "noting")
    /\ finished' \in {finished} \union upto
    /\ Set(d, [Idle EXCEPT !.from = 0])
    /\ UNCHANGED <<placed, records, table, refusals, done, sent, stops>>

-----------------------------------------------------------------------------
\* A change that was sent lands, perhaps after its driver is gone.
Land ==
    \E change \in sent :
        /\ sent' = sent \ {change}
        /\ IF Holds(change) THEN Take(change) ELSE UNCHANGED table
        /\ UNCHANGED <<placed, records, refusals, done, finished, stops, proc>>

\* Another program compacts files or expires snapshots.
Rewrite ==
    /\ snapshot < MaxSnapshots - 1 /\ stops < MaxStops
    /\ snapshot' = snapshot + 1
    /\ stops' = stops + 1
    /\ UNCHANGED <<placed, records, fence, live, refused, refusals, done, finished, sent, applied, proc>>

\* A driver dies; another process begins in its place, which finds what is not done.
Stop(d) ==
    /\ ~At(d, "idle") /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ placed' = [placed EXCEPT ![d] = Manifests \ done]
    /\ Set(d, Idle)
    /\ UNCHANGED <<records, table, refusals, done, finished, sent>>

\* An operator releases a manifest: a driver places it again, and batches may have it.
Release ==
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ \E m \in held \ done, d \in Drivers :
        /\ held' = held \ {m}
        /\ placed' = [placed EXCEPT ![d] = @ \union {m}]
    /\ UNCHANGED <<records, table, verdicts, done, finished, sent, proc>>

Next ==
    \/ Land \/ Rewrite \/ Release
    \/ \E d \in Drivers :
        \/ Begin(d) \/ ReadHead(d) \/ Finish(d) \/ FindRecord(d) \/ Choose(d) \/ Forget(d) \/ Record(d)
        \/ Send(d) \/ Pass(d) \/ Reread(d) \/ Retry(d) \/ Hold(d) \/ Judge(d) \/ Done(d) \/ Note(d) \/ Stop(d)

Spec == Init /\ [][Next]_vars

\* Answers come in the end, and who reads goes on.
FairSpec ==
    /\ Spec
    /\ \A d \in Drivers :
        /\ WF_vars(Begin(d)) /\ WF_vars(ReadHead(d)) /\ WF_vars(Finish(d)) /\ WF_vars(FindRecord(d))
        /\ WF_vars(Choose(d)) /\ WF_vars(Forget(d)) /\ WF_vars(Record(d))
        /\ SF_vars(Send(d) /\ ~IsBad(d) /\ fence' = Next1(d)) /\ SF_vars(Pass(d) /\ fence' = Next1(d))
        /\ WF_vars(Send(d)) /\ WF_vars(Reread(d)) /\ WF_vars(Hold(d)) /\ WF_vars(Judge(d)) /\ WF_vars(Done(d))
        /\ WF_vars(Note(d))

-----------------------------------------------------------------------------
TypesHold == fence \in 0..MaxBatches /\ snapshot \in 0..MaxSnapshots /\ finished \in 0..MaxBatches

\* Whatever answers are lost or late, the files of a manifest are in the table once at most.
AnEffectOnce == \A m \in Manifests : live[m] <= 1

\* The fence is the number of the batches that took effect or were passed over, each of them once and in order.
FenceCounts == Len(applied) = fence /\ \A n \in 1..Len(applied) : applied[n] \in {n, -n}

\* What is on record as refused never takes effect, however late; and what was passed over is on record, or comes to it
\* before any later batch.
RefusedStaysOut ==
    /\ \A n \in verdicts : n <= fence /\ applied[n] = -n
    /\ \A n \in 1..Len(applied) :
        applied[n] < 0 /\ n \notin verdicts => n = fence /\ \A later \in Numbers : later > n => records[later] = {}

\* What is done is visible, and what is visible is as it was recorded.
DoneIsVisible == \A m \in done : live[m] = 1
VisibleIsRecorded == \A m \in Manifests : live[m] > 0 => \E n \in 1..fence : m \in records[n] /\ applied[n] = n

\* A manifest is in one batch that is not refused, and batches have no gaps.
Refused == verdicts \union {refused}
OneBatchEach == \A m \in Manifests : Cardinality({n \in Numbers \ Refused : m \in records[n]}) <= 1
NoGaps == \A n \in Numbers : n > 1 /\ records[n] # {} => records[n - 1] # {} /\ fence >= n - 1

\* No manifest is forgotten: one that is not done waits with a driver, or is held back, which is on record.
NothingForgotten == \A m \in Manifests : m \in done \union held \/ \E d \in Drivers : m \in placed[d]

\* A record never changes.
RecordsStay == [][\A n \in Numbers : records[n] # {} => records'[n] = records[n]]_vars

\* Only the bad ones are held back.
HeldIsBad == held \subseteq Bad

\* Each manifest is visible and done in the end, but for bad ones, which may be held back.
EachIsVisible == <>(done \union held = Manifests /\ Manifests \ Bad \subseteq done)
=============================================================================
