------------------------------- MODULE Commit -------------------------------
(* How one manifest becomes rows: intake, attempts, the commit, publication, clean-up, and the cleaner beside them.    *)
(* Drivers work at the same time. Each may be held up at any step for as long as it takes, or stop there: it dies, or  *)
(* a call that took effect is reported as failed. A delete may take effect long after its driver is gone.              *)
(* Files in place are written under their final names, which no other attempt has, and a table lists them there: what  *)
(* is visible is what it lists. All others are staged, and copied to names that all attempts have in common.           *)
EXTENDS Integers, FiniteSets

CONSTANTS Drivers, MaxAttempts, MaxStops, InPlace, Guards

Attempts == 1..MaxAttempts
Nothing == 0
Dead == -1   \* the outcome of a dead letter; that of a commit is the number of its attempt
Files == {1, 2} \* what an attempt has to stage: the rejects, and the Parquet file
Has(guard) == guard \in Guards

VARIABLES
    delivered, \* whether the manifest is in the watched prefix
    accepted,  \* whether its id is bound
    open,      \* whether it is in the index of open manifests
    number,    \* how many attempts are on record
    staged,    \* the files that each attempt has in its staging, or in place
    kept,      \* the attempts whose verified commit is kept
    outcome,
    visible,   \* the final names, or the files in the table: whose file is there
    done,
    original,  \* the manifest in `archive/` or `failed/`: "none", "kept" or "expired"
    sent,      \* deletes that may still take effect: of which attempt, and whether of files in place
    cleaner,   \* the cleaner: its step, and the staging that it listed
    stops,
    proc       \* each driver: its step, the attempt that it works on, the attempts and the outcome that it knows

vars == <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops, proc>>

Idle == [at |-> "idle", work |-> Nothing, known |-> 0, outcome |-> Nothing, next |-> 1]

Init ==
    /\ delivered = TRUE
    /\ accepted = FALSE
    /\ open = FALSE
    /\ number = 0
    /\ staged = [a \in Attempts |-> {}]
    /\ kept = {}
    /\ outcome = Nothing
    /\ visible = [f \in Files |-> Nothing]
    /\ done = FALSE
    /\ original = "none"
    /\ sent = {}
    /\ cleaner = [at |-> "idle", listed |-> {}]
    /\ stops = 0
    /\ proc = [d \in Drivers |-> Idle]

At(d, step) == proc[d].at = step
Set(d, changed) == proc' = [proc EXCEPT ![d] = changed]
GoTo(d, step) == Set(d, [proc[d] EXCEPT !.at = step])

\* The folder of an attempt.
Folder(a) == IF Has("each attempt has its own staging") THEN a ELSE 1
Staged(a) == staged[Folder(a)]
Empty(folders) == [a \in Attempts |-> IF a \in folders THEN {} ELSE staged[a]]
Unstaged(folders) == [a \in Attempts |-> IF a \in folders THEN staged[a] \cap InPlace ELSE staged[a]]

\* Once an outcome is on record, the files in place of all other attempts are orphans.
IsOrphaned(a) ==
    /\ staged[a] \cap InPlace # {}
    /\ outcome # Nothing \/ ~Has("files in place of what is not decided stay")
    /\ outcome <= 0 \/ a # Folder(outcome) \/ ~Has("files in place that a commit names stay")

-----------------------------------------------------------------------------
Receive(d) ==
    /\ At(d, "idle")
    /\ delivered
    /\ accepted' = TRUE
    /\ GoTo(d, "read")
    /\ UNCHANGED <<delivered, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* Recovery, or another sweep of the index.
Recover(d) ==
    /\ At(d, "idle")
    /\ open
    /\ GoTo(d, "read")
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

ReadState(d) ==
    /\ At(d, "read")
    /\ Set(d, [proc[d] EXCEPT
        !.at = CASE outcome # Nothing /\ done -> "unstage" [] outcome # Nothing -> "publish" [] OTHER -> "open",
        !.known = number, !.outcome = outcome])
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

Open(d) ==
    /\ At(d, "open")
    /\ open' = TRUE
    /\ GoTo(d, "review")
    /\ UNCHANGED <<delivered, accepted, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* An earlier attempt was verified, and all of its files are there.
FindVerified(d) ==
    /\ At(d, "review")
    /\ \E a \in kept :
        /\ a <= proc[d].known
        /\ Staged(a) = Files
        /\ Set(d, [proc[d] EXCEPT !.at = "decide", !.work = a])
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* The attempts that count are used up, or the manifest cannot be compacted.
GiveUp(d) ==
    /\ \/ At(d, "review") /\ proc[d].known > 0
       \/ At(d, "inspect")
    /\ Set(d, [proc[d] EXCEPT !.at = "decide", !.work = Dead])
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

Attempt(d) ==
    /\ At(d, "review")
    /\ number < MaxAttempts
    /\ number' = number + 1
    /\ Set(d, [proc[d] EXCEPT !.at = "inspect", !.work = number + 1])
    /\ UNCHANGED <<delivered, accepted, open, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

Stage(d, files) == staged' = [staged EXCEPT ![Folder(proc[d].work)] = @ \union files]

Inspect(d) ==
    /\ At(d, "inspect")
    /\ Stage(d, {1})
    /\ GoTo(d, "convert")
    /\ UNCHANGED <<delivered, accepted, open, number, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* The engine may leave out rows.
Convert(d) ==
    /\ At(d, "convert")
    /\ \E files \in {{}, {2}} : Stage(d, files)
    /\ GoTo(d, "verify")
    /\ UNCHANGED <<delivered, accepted, open, number, kept, outcome, visible, done, original, sent, cleaner, stops>>

Verify(d) ==
    /\ At(d, "verify")
    /\ GoTo(d, IF Staged(proc[d].work) = Files \/ ~Has("verify before deciding") THEN "keep" ELSE "failed")
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* A failed attempt looks for the outcome of another driver, and else deletes what it staged.
Fail(d) ==
    /\ At(d, "failed")
    /\ IF outcome # Nothing
       THEN /\ Set(d, [proc[d] EXCEPT !.at = "publish", !.outcome = outcome])
            /\ UNCHANGED staged
       ELSE /\ staged' = Empty({Folder(proc[d].work)})
            /\ Set(d, Idle)
    /\ UNCHANGED <<delivered, accepted, open, number, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* From here on, any driver may decide the commit.
Keep(d) ==
    /\ At(d, "keep")
    /\ kept' = kept \union {proc[d].work}
    /\ GoTo(d, "decide")
    /\ UNCHANGED <<delivered, accepted, open, number, staged, outcome, visible, done, original, sent, cleaner, stops>>

\* The commit point: a create-only record, and the one place for a commit and a dead letter.
Decide(d) ==
    /\ At(d, "decide")
    /\ outcome' = IF outcome = Nothing \/ ~Has("the outcome is create-only")
                     \/ (proc[d].work = Dead /\ ~Has("commit and dead letter share one key"))
                  THEN proc[d].work ELSE outcome
    /\ Set(d, [proc[d] EXCEPT !.at = "publish", !.outcome = outcome'])
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, visible, done, original, sent, cleaner, stops>>

PublishOne(d) ==
    /\ At(d, "publish")
    /\ proc[d].outcome > 0
    /\ proc[d].next \in Staged(proc[d].outcome)
    /\ visible' = [visible EXCEPT ![proc[d].next] = proc[d].outcome]
    /\ Set(d, [proc[d] EXCEPT !.at = IF @ = "publish" /\ proc[d].next = 2 THEN "published" ELSE "publish",
                              !.next = IF @ = 1 THEN 2 ELSE 1])
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, done, original, sent, cleaner, stops>>

\* The staged file is gone: another driver is further, or else somebody has to know (`NothingIsLost`).
FindStagingGone(d) ==
    /\ At(d, "publish")
    /\ proc[d].outcome > 0
    /\ proc[d].next \notin Staged(proc[d].outcome)
    /\ Set(d, IF done THEN [proc[d] EXCEPT !.at = "published", !.next = 1] ELSE Idle)
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

Bury(d) ==
    /\ At(d, "publish")
    /\ proc[d].outcome = Dead
    /\ original' = "kept"
    /\ GoTo(d, "published")
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, sent, cleaner, stops>>

Finish(d) ==
    /\ At(d, "published") \/ (At(d, "publish") /\ ~Has("done follows publication"))
    /\ done' = TRUE
    /\ GoTo(d, "unstage")
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, original, sent, cleaner, stops>>

\* What is staged is deleted one after the other.
Unstage(d) ==
    /\ At(d, "unstage")
    /\ \E a \in Attempts : staged[a] \ InPlace # {} /\ staged' = Unstaged({a})
    /\ UNCHANGED <<delivered, accepted, open, number, kept, outcome, visible, done, original, sent, cleaner, stops, proc>>

\* What other attempts wrote in place goes after it. A driver that may not delete it leaves it to the sweep.
DeleteOrphans(d) ==
    /\ At(d, "unstage")
    /\ \E a \in Attempts : IsOrphaned(a) /\ staged' = [staged EXCEPT ![a] = @ \ InPlace]
    /\ UNCHANGED <<delivered, accepted, open, number, kept, outcome, visible, done, original, sent, cleaner, stops, proc>>

EndUnstaging(d) ==
    /\ At(d, "unstage")
    /\ \A a \in Attempts : staged[a] \ InPlace = {}
    /\ GoTo(d, "archive")
    /\ UNCHANGED <<staged, delivered, accepted, open, number, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* The delete is sent, and the driver stops. It takes effect at any later time.
UnstageLate(d) ==
    /\ At(d, "unstage")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ sent' = sent \union {<<a, FALSE>> : a \in {b \in Attempts : staged[b] \ InPlace # {}}}
                   \union {<<a, TRUE>> : a \in {b \in Attempts : IsOrphaned(b)}}
    /\ Set(d, Idle)
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, cleaner>>

Land(a, isInPlace) ==
    /\ <<a, isInPlace>> \in sent
    /\ sent' = sent \ {<<a, isInPlace>>}
    /\ staged' = IF isInPlace THEN [staged EXCEPT ![a] = @ \ InPlace] ELSE Unstaged({a})
    /\ UNCHANGED <<delivered, accepted, open, number, kept, outcome, visible, done, original, cleaner, stops, proc>>

\* What goes to `archive/` is copied first. It is not copied again if it is there or if the original is gone.
Archive(d) ==
    /\ At(d, "archive")
    /\ original' = IF original = "none" THEN "kept" ELSE original
    /\ GoTo(d, "remove")
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, sent, cleaner, stops>>

Remove(d) ==
    /\ At(d, "remove")
    /\ delivered' = FALSE
    /\ GoTo(d, "close")
    /\ UNCHANGED <<accepted, open, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

Close(d) ==
    /\ At(d, "close")
    /\ open' = FALSE
    /\ Set(d, Idle)
    /\ UNCHANGED <<delivered, accepted, number, staged, kept, outcome, visible, done, original, sent, cleaner, stops>>

\* The driver dies, or gives up for now because an answer was lost. What it has sent stays.
Stop(d) ==
    /\ ~At(d, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ sent' = IF At(d, "decide") /\ proc[d].work > 0 /\ ~Has("what was kept stays staged")
               THEN sent \union {<<Folder(proc[d].work), FALSE>>} ELSE sent
    /\ Set(d, Idle)
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, cleaner>>

-----------------------------------------------------------------------------
\* The cleaner lists staging that is old. Any staging may have become old: pauses last as long as it takes.
CleanerLists ==
    /\ cleaner.at = "idle"
    /\ \E a \in Attempts : staged[a] \ InPlace # {}
    /\ cleaner' = [at |-> "judge", listed |-> {a \in Attempts : staged[a] \ InPlace # {}}]
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, stops, proc>>

\* Then it judges the manifest.
CleanerJudges ==
    /\ cleaner.at = "judge"
    /\ cleaner' = IF \/ open /\ Has("the cleaner spares open manifests")
                     \/ outcome > 0 /\ ~done
                  THEN [at |-> "idle", listed |-> {}] ELSE [cleaner EXCEPT !.at = "delete"]
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, sent, stops, proc>>

CleanerDeletes ==
    /\ cleaner.at = "delete"
    /\ staged' = Unstaged(cleaner.listed)
    /\ cleaner' = [at |-> "idle", listed |-> {}]
    /\ UNCHANGED <<delivered, accepted, open, number, kept, outcome, visible, done, original, sent, stops, proc>>

\* The sweep lists files in place and reads the outcome then. What it decides takes effect at any later time.
Sweep(a) ==
    /\ IsOrphaned(a)
    /\ <<a, TRUE>> \notin sent
    /\ sent' = sent \union {<<a, TRUE>>}
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, original, cleaner, stops, proc>>

CleanerExpires ==
    /\ original = "kept"
    /\ (outcome > 0 /\ done) \/ ~Has("the cleaner spares originals of what is not committed and done")
    /\ original' = "expired"
    /\ UNCHANGED <<delivered, accepted, open, number, staged, kept, outcome, visible, done, sent, cleaner, stops, proc>>

Progress(d) ==
    \/ Receive(d) \/ Recover(d) \/ ReadState(d) \/ Open(d) \/ FindVerified(d) \/ GiveUp(d) \/ Attempt(d) \/ Inspect(d)
    \/ Convert(d) \/ Verify(d) \/ Fail(d) \/ Keep(d) \/ Decide(d) \/ PublishOne(d) \/ FindStagingGone(d) \/ Bury(d)
    \/ Finish(d) \/ Unstage(d) \/ DeleteOrphans(d) \/ EndUnstaging(d) \/ Archive(d) \/ Remove(d) \/ Close(d)

Next ==
    \/ \E d \in Drivers : Progress(d) \/ UnstageLate(d) \/ Stop(d)
    \/ \E a \in Attempts : Sweep(a) \/ \E isInPlace \in BOOLEAN : Land(a, isInPlace)
    \/ CleanerLists \/ CleanerJudges \/ CleanerDeletes \/ CleanerExpires

Spec == Init /\ [][Next]_vars

FairSpec == Spec /\ \A d \in Drivers : WF_vars(Progress(d))

-----------------------------------------------------------------------------
TypesHold ==
    /\ number \in 0..MaxAttempts
    /\ outcome \in {Nothing, Dead} \union Attempts
    /\ kept \subseteq Attempts

\* Readers see files of the attempt that was decided, of nothing else, and so each row once.
AnEffectOnce == \A f \in Files : visible[f] # Nothing => visible[f] = outcome

\* What is decided was verified: nothing can be seen of an attempt that was not.
NothingVisibleUnverified ==
    \A f \in Files : visible[f] # Nothing => /\ visible[f] \in kept
                                             /\ done \/ Staged(visible[f]) = Files

\* Done is whole, and stays so: what a table lists is there.
DoneIsWhole ==
    done /\ outcome > 0 => \A f \in Files : visible[f] = outcome /\ (f \in InPlace => f \in Staged(outcome))

\* What is decided and not done is staged, or visible already: the cleaner removed nothing that is reachable.
NothingIsLost ==
    outcome > 0 /\ ~done =>
        \A f \in Files : f \in Staged(outcome) \/ (visible[f] = outcome /\ f \notin InPlace)

\* Until it is done, a driver finds it again.
NothingForgotten == accepted /\ ~done => delivered \/ open

\* The manifest itself is kept until it is committed and done; a dead letter is kept for good.
OriginalIsKept ==
    /\ delivered \/ original # "none"
    /\ original = "expired" => outcome > 0 /\ done

OutcomesStay == [][outcome # Nothing => outcome' = outcome]_vars

\* Each manifest ends as done, by a commit or a dead letter, and leaves nothing open behind.
ItEnds == <>[](done /\ ~delivered /\ ~open)
=============================================================================
