------------------------------- MODULE Shards -------------------------------
(* Which of several jobs over one prefix takes a manifest: by the heartbeats that each has read, which may be old. A   *)
(* job may die, end, be held up for longer than its heartbeat lives and go on, or begin under another number of shards. *)
(* Commit has what drivers that work on one manifest at the same time do; here is that one of them does it.             *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Story,     \* which jobs there are
          Ascending, \* whether the shard with the highest number is the one that takes the manifest, or the lowest
          MaxWrong,  \* how often a living job may count as dead because it was held up
          Guards

\* In the order in which they begin: the number of the shard of each, and of how many; 0 of 0 for a job that takes all.
Jobs ==
    CASE Story = "one goes" -> <<<<1, 2>>, <<2, 2>>>>
      [] Story = "one is replaced" -> <<<<1, 1>>, <<1, 1>>>>
      [] Story = "their number grows" -> <<<<1, 1>>, <<2, 2>>>>
      [] Story = "one without a shard becomes two" -> <<<<0, 0>>, <<1, 2>>, <<2, 2>>>>
\* The jobs that stay to the end; all others may end or die at any step.
Lasting ==
    CASE Story = "one goes" -> {1}
      [] Story = "one is replaced" -> {2}
      [] Story = "their number grows" -> {1, 2}
      [] Story = "one without a shard becomes two" -> {2, 3}

Runs == 1..Len(Jobs)
Number(r) == Jobs[r][1]
IsAlone(r) == Jobs[r][2] = 0
Has(guard) == guard \in Guards

VARIABLES
    life,     \* of each job: "none", "on" or "off"
    beat,     \* its heartbeat, as others judge it: "none", "fresh" or "old"
    view,     \* the shards that a job believes to be there
    member,   \* whether it knows itself to be one of them
    taking,   \* whether it takes manifests
    seen,     \* the shards that it has ever seen, or waits for no longer
    changed,  \* whether its share has changed since it last listed the prefix
    told,     \* its share when it last did so
    shown,    \* whether its stream has shown it the manifest, which it does once
    queued,   \* whether the manifest waits in its queue
    at,       \* what it does: "rest", "review", "begin", "work", "publish"
    last,     \* the job of the last attempt on record, if that has no end there; 0 for none
    outcome,  \* the job whose attempt was decided; 0 for none
    effects,  \* those whose attempts were decided at some time
    done, wrong

shares == <<view, member, taking, seen, changed, told>>
vars == <<life, beat, shares, shown, queued, at, last, outcome, effects, done, wrong>>

Init ==
    /\ life = [r \in Runs |-> "none"]
    /\ beat = [r \in Runs |-> "none"]
    /\ view = [r \in Runs |-> {}]
    /\ member = [r \in Runs |-> FALSE]
    /\ taking = [r \in Runs |-> FALSE]
    /\ seen = [r \in Runs |-> {}]
    /\ changed = [r \in Runs |-> FALSE]
    /\ told = [r \in Runs |-> <<{}, FALSE>>]
    /\ shown = [r \in Runs |-> FALSE]
    /\ queued = [r \in Runs |-> FALSE]
    /\ at = [r \in Runs |-> "rest"]
    /\ last = 0
    /\ outcome = 0
    /\ effects = {}
    /\ done = FALSE
    /\ wrong = 0

IsOn(r) == life[r] = "on"
Set(f, r, value) == [f EXCEPT ![r] = value]

\* By the heartbeats, the last job of each shard takes its manifests.
Living == {r \in Runs : beat[r] = "fresh"}
Latest(r) == \A other \in Living : Number(other) = Number(r) => other <= r
Members == {r \in Living : ~IsAlone(r) /\ (Latest(r) \/ ~Has("of two jobs of one shard the later one takes all"))}
Taker(numbers) == CHOOSE n \in numbers : \A other \in numbers : IF Ascending THEN other <= n ELSE other >= n
IsMine(r) == IsAlone(r) \/ (taking[r] /\ Number(r) \in view[r] /\ Taker(view[r]) = Number(r))

-----------------------------------------------------------------------------
Begin(r) ==
    /\ life[r] = "none"
    /\ \A earlier \in Runs : earlier < r => life[earlier] # "none"
    /\ life' = Set(life, r, "on")
    /\ beat' = Set(beat, r, "fresh")
    /\ UNCHANGED <<shares, shown, queued, at, last, outcome, effects, done, wrong>>

Beat(r) ==
    /\ IsOn(r) /\ beat[r] = "old"
    /\ beat' = Set(beat, r, "fresh")
    /\ UNCHANGED <<life, shares, shown, queued, at, last, outcome, effects, done, wrong>>

\* A heartbeat has not come for too long: its job is gone, or held up.
Expire(r) ==
    /\ beat[r] = "fresh"
    /\ IF IsOn(r) THEN wrong < MaxWrong /\ wrong' = wrong + 1 ELSE UNCHANGED wrong
    /\ beat' = Set(beat, r, "old")
    /\ UNCHANGED <<life, shares, shown, queued, at, last, outcome, effects, done>>

\* The job dies, or ends in order, which deletes its heartbeat.
End(r) ==
    /\ IsOn(r) /\ r \notin Lasting
    /\ life' = Set(life, r, "off")
    /\ beat' \in {beat, Set(beat, r, "old")}
    /\ UNCHANGED <<shares, shown, queued, at, last, outcome, effects, done, wrong>>

\* It reads all heartbeats. A shard that it has never seen is waited for at first. It takes nothing before others, too, had
\* the time to see it.
Read(r) ==
    LET numbers == {Number(each) : each \in Members}
        isMember == r \in Members
        hasTime == isMember /\ member[r] IN
    /\ IsOn(r) /\ ~IsAlone(r)
    /\ \E patient \in IF (1..Jobs[r][2]) \subseteq seen[r] THEN {FALSE} ELSE {TRUE, FALSE} :
        LET known == seen[r] \union numbers \union (IF patient THEN {} ELSE 1..Jobs[r][2])
            now == numbers \union ((1..Jobs[r][2]) \ known)
            isLet == (\A each \in Living : ~IsAlone(each)) \/ ~Has("shards wait until a job without a shard has ended")
            takes == hasTime /\ isLet
            has == IF Has("a change that was taken back counts, too") THEN changed[r] \/ now # view[r] \/ takes # taking[r]
                   ELSE told[r] # <<now, takes>> IN
        /\ view' = Set(view, r, now)
        /\ seen' = Set(seen, r, known)
        /\ taking' = Set(taking, r, takes)
        /\ changed' = Set(changed, r, has)
    /\ member' = Set(member, r, isMember)
    /\ UNCHANGED <<told, life, beat, shown, queued, at, last, outcome, effects, done, wrong>>

\* The stream shows it the manifest. It leaves out what is not its own.
Show(r) ==
    /\ IsOn(r) /\ ~shown[r] /\ ~done
    /\ shown' = Set(shown, r, TRUE)
    /\ queued' = Set(queued, r, queued[r] \/ IsMine(r))
    /\ UNCHANGED <<life, beat, shares, at, last, outcome, effects, done, wrong>>

\* Its share has changed, so it lists the prefix and the index of open manifests again.
Follow(r) ==
    /\ IsOn(r) /\ changed[r] /\ Has("a job lists again when its share has changed")
    /\ changed' = Set(changed, r, FALSE)
    /\ told' = IF Has("a change that was taken back counts, too") THEN told ELSE Set(told, r, <<view[r], taking[r]>>)
    /\ queued' = Set(queued, r, queued[r] \/ (IsMine(r) /\ ~done))
    /\ UNCHANGED <<life, beat, view, member, taking, seen, shown, at, last, outcome, effects, done, wrong>>

Take(r) ==
    /\ IsOn(r) /\ queued[r] /\ at[r] = "rest"
    /\ IF IsMine(r) /\ ~done THEN at' = Set(at, r, "review") /\ UNCHANGED queued
       ELSE queued' = Set(queued, r, FALSE) /\ UNCHANGED at
    /\ UNCHANGED <<life, beat, shares, shown, last, outcome, effects, done, wrong>>

\* What a living job is about to decide is left to it, for a time.
IsLeft(r, isNew) ==
    /\ last \notin {0, r} /\ beat[last] = "fresh" /\ ~IsAlone(r)
    /\ isNew \/ ~Has("an attempt is left to a living job for a time only")

\* It reads what is on record of the manifest.
Review(r) ==
    /\ IsOn(r) /\ at[r] = "review"
    /\ \E isNew \in {TRUE, FALSE} :
        at' = Set(at, r, IF outcome # 0 THEN "publish" ELSE IF IsLeft(r, isNew) THEN "rest" ELSE "begin")
    /\ UNCHANGED <<life, beat, shares, shown, queued, last, outcome, effects, done, wrong>>

\* It records an attempt. Meanwhile another job may have done all: then the attempt is for nothing.
Attempt(r) ==
    /\ IsOn(r) /\ at[r] = "begin"
    /\ at' = Set(at, r, "work")
    /\ last' = r
    /\ UNCHANGED <<life, beat, shares, shown, queued, outcome, effects, done, wrong>>

\* The answer to the record of its attempt is lost, and then the manifest is no longer its own.
Forget(r) ==
    /\ IsOn(r) /\ at[r] = "work" /\ last = r
    /\ ~IsMine(r)
    /\ at' = Set(at, r, "rest")
    /\ queued' = Set(queued, r, FALSE)
    /\ UNCHANGED <<life, beat, shares, shown, last, outcome, effects, done, wrong>>

Decide(r) ==
    /\ IsOn(r) /\ at[r] = "work"
    /\ IF outcome = 0 \/ ~Has("the outcome is create-only")
       THEN outcome' = r /\ effects' = effects \union {r} ELSE UNCHANGED <<outcome, effects>>
    /\ at' = Set(at, r, "publish")
    /\ UNCHANGED <<life, beat, shares, shown, queued, last, done, wrong>>

Finish(r) ==
    /\ IsOn(r) /\ at[r] = "publish"
    /\ done' = TRUE
    /\ at' = Set(at, r, "rest")
    /\ queued' = Set(queued, r, FALSE)
    /\ UNCHANGED <<life, beat, shares, shown, last, outcome, effects, wrong>>

-----------------------------------------------------------------------------
Next ==
    \E r \in Runs :
        \/ Begin(r) \/ Beat(r) \/ Expire(r) \/ End(r) \/ Read(r)
        \/ Show(r) \/ Follow(r) \/ Take(r) \/ Review(r) \/ Attempt(r) \/ Forget(r) \/ Decide(r) \/ Finish(r)

Spec == Init /\ [][Next]_vars

\* Jobs that last go on, and so does what the store shows of those that are gone.
FairSpec ==
    /\ Spec
    /\ \A r \in Runs :
        /\ WF_vars(Begin(r)) /\ WF_vars(Beat(r)) /\ WF_vars(Expire(r) /\ ~IsOn(r))
        /\ WF_vars(Read(r))
        /\ WF_vars(Show(r)) /\ WF_vars(Follow(r)) /\ WF_vars(Take(r)) /\ SF_vars(Review(r) /\ at'[r] # "rest")
        /\ WF_vars(Attempt(r)) /\ WF_vars(Decide(r)) /\ WF_vars(Finish(r))

-----------------------------------------------------------------------------
TypesHold == last \in Runs \union {0} /\ outcome \in Runs \union {0}

\* However many jobs take a manifest for their own, one attempt at it takes effect.
AnEffectOnce == Cardinality(effects) <= 1

\* Once all have read what is there, one of them takes it.
IsSettled ==
    /\ \A r \in Runs : life[r] # "none" /\ (IsOn(r) <=> beat[r] = "fresh")
    /\ \A r \in Runs : ~ENABLED <<Read(r)>>_vars
OneTakes == IsSettled => Cardinality({r \in Runs : IsOn(r) /\ IsMine(r)}) = 1

\* What is done stays so, by the attempt that was decided.
OutcomesStay == [][outcome # 0 => outcome' = outcome]_vars

\* Whatever jobs go and come, the manifest is done.
EachIsDone == <>done
=============================================================================
