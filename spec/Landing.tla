------------------------------ MODULE Landing ------------------------------
(* How records of a log come into manifests. Planners go on where the chain of a partition ends: they read, write the  *)
(* objects of what they read and a draft, create its links, and write the manifest of those links that they got. The   *)
(* draft stays until a job has begun with it, so that a manifest that is lost before is written again. A planner may    *)
(* stop or be held up at any step. Retention removes records at any time, and a log may be deleted and made again.      *)
EXTENDS Integers, FiniteSets

CONSTANTS Partitions, Planners, MaxOffset, MaxTopics, MaxIds,
          MaxStops,  \* of planners that stop, of manifests that are lost, and of ids that are taken
          MayForge,  \* whether an operator copies a manifest under another id
          Guards     \* what keeps the protocol exact; all of it, unless a guard is left out on purpose

Ids == 1..MaxIds
Topics == 1..MaxTopics
Places == Topics \X Partitions
Offsets == 0..MaxOffset - 1
Unknown == 99
NoLink == [end |-> 0, id |-> 0]
NoRun == [first |-> 0, seen |-> 0, end |-> 0]
NoPlan == [topic |-> 0, of |-> 0, runs |-> [k \in Partitions |-> NoRun]]
Has(guard) == guard \in Guards
Range(f) == {f[k] : k \in DOMAIN f}
Max(a, b) == IF a > b THEN a ELSE b

VARIABLES
    live,     \* the id of the topic that has the name now
    end,      \* the offsets that each partition ever had
    earliest, \* the first offset that retention has left
    origin,   \* where each chain begins
    link,     \* the chains: by its first offset, where a link ends, and its manifest
    plan,     \* what each id was planned to name: a topic id, and a run of offsets of some partitions
    drafts,   \* the ids whose drafts are there
    written,  \* the manifests in the watched prefix
    members,  \* the partitions of its plan that each manifest names
    accepted, \* the manifests that the job has taken in, and begun with
    taken,    \* the ids that are bound to something else than what was planned for them
    used, stops,
    proc      \* each planner: its step, the topic id, drafts to settle, heads and bounds, and the draft that it settles

brokerVars == <<live, end, earliest>>
chainVars == <<origin, link>>
manifestVars == <<written, members, accepted, taken>>
vars == <<brokerVars, chainVars, plan, drafts, manifestVars, used, stops, proc>>

None == [k \in Partitions |-> Unknown]
Idle == [at |-> "idle", topic |-> 0, of |-> 0, left |-> {}, heads |-> None, seen |-> None, ends |-> None, todo |-> {},
         id |-> 0, won |-> {}, own |-> FALSE]

Init ==
    /\ live = 1
    /\ end = [p \in Places |-> 0]
    /\ earliest = [p \in Places |-> 0]
    /\ origin = [p \in Places |-> Unknown]
    /\ link = [p \in Places |-> [o \in Offsets |-> NoLink]]
    /\ plan = [i \in Ids |-> NoPlan]
    /\ drafts = {}
    /\ written = {}
    /\ members = [i \in Ids |-> {}]
    /\ accepted = {}
    /\ taken = {}
    /\ used = 0
    /\ stops = 0
    /\ proc = [c \in Planners |-> Idle]

At(c, step) == proc[c].at = step
Set(c, changed) == proc' = [proc EXCEPT ![c] = changed]
Planned(i) == {k \in Partitions : plan[i].runs[k] # NoRun}

\* A producer, retention, and an operator who deletes the topic and makes it again.
Produce(k) ==
    /\ end[<<live, k>>] < MaxOffset
    /\ end' = [end EXCEPT ![<<live, k>>] = @ + 1]
    /\ UNCHANGED <<live, earliest, chainVars, plan, drafts, manifestVars, used, stops, proc>>

Remove(k) ==
    /\ earliest[<<live, k>>] < end[<<live, k>>]
    /\ earliest' = [earliest EXCEPT ![<<live, k>>] = @ + 1]
    /\ UNCHANGED <<live, end, chainVars, plan, drafts, manifestVars, used, stops, proc>>

MakeAgain ==
    /\ live < MaxTopics
    /\ live' = live + 1
    /\ UNCHANGED <<end, earliest, chainVars, plan, drafts, manifestVars, used, stops, proc>>

-----------------------------------------------------------------------------
\* A planner asks for the id of the topic, and lists the drafts of this id, and of former ones, whose manifests do not wait.
Begin(c) ==
    /\ At(c, "idle")
    /\ Set(c, [Idle EXCEPT !.at = "left", !.topic = live,
               !.left = {i \in drafts : /\ i \notin written
                                        /\ Has("drafts of planners that died are settled")
                                        /\ plan[i].topic = live \/ Has("drafts of former topics are settled")}])
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, manifestVars, used, stops>>

\* It drops those of manifests that a job has begun with.
SettleLeft(c) ==
    /\ At(c, "left")
    /\ \E i \in proc[c].left :
        /\ drafts' = IF i \in accepted THEN drafts \ {i} ELSE drafts
        /\ Set(c, IF i \in accepted THEN [proc[c] EXCEPT !.left = @ \ {i}]
                  ELSE [proc[c] EXCEPT !.at = "link", !.left = @ \ {i}, !.id = i, !.todo = Planned(i), !.won = {}])
    /\ UNCHANGED <<brokerVars, chainVars, plan, manifestVars, used, stops>>

\* Where chains end: with the last link, or at the origin.
Head(p) ==
    LET ends == {link[p][o].end : o \in {o \in Offsets : link[p][o] # NoLink}} IN
    IF ends = {} THEN origin[p] ELSE CHOOSE e \in ends : \A other \in ends : e >= other

ReadHeads(c) ==
    /\ At(c, "left")
    /\ proc[c].left = {}
    /\ Set(c, [proc[c] EXCEPT !.at = "bounds", !.heads = [k \in Partitions |-> Head(<<proc[c].topic, k>>)]])
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, manifestVars, used, stops>>

\* Brokers are asked by the name of the topic, for bounds and records. The id is compared afterwards: ids never come back.
ReadRecords(c) ==
    /\ At(c, "bounds")
    /\ IF live # proc[c].topic /\ Has("the id of the log is compared once it was read") THEN Set(c, Idle)
       ELSE Set(c, [proc[c] EXCEPT !.at = IF Unknown \in Range(proc[c].heads) THEN "origins" ELSE "plan", !.of = live,
                    !.todo = {k \in Partitions : proc[c].heads[k] = Unknown},
                    !.seen = [k \in Partitions |-> earliest[<<live, k>>]],
                    !.ends = [k \in Partitions |-> Max(end[<<live, k>>], earliest[<<live, k>>])]])
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, manifestVars, used, stops>>

\* A chain that was not begun begins at the earliest offset; the record is create-only.
BeginChain(c) ==
    /\ At(c, "origins")
    /\ \E k \in proc[c].todo :
        LET p == <<proc[c].topic, k>> IN
        /\ origin' = IF origin[p] = Unknown THEN [origin EXCEPT ![p] = proc[c].seen[k]] ELSE origin
        /\ Set(c, [proc[c] EXCEPT !.todo = @ \ {k}, !.at = IF proc[c].todo = {k} THEN "plan" ELSE @,
                   !.heads[k] = IF Has("planners begin a chain at the same offset") THEN origin'[p] ELSE proc[c].seen[k]])
    /\ UNCHANGED <<brokerVars, link, plan, drafts, manifestVars, used, stops>>

\* The partitions of which there is something to plan, and where a run of one may end.
Waiting(c) == {k \in Partitions : proc[c].heads[k] # Unknown /\ proc[c].heads[k] < proc[c].ends[k]}
MayEnd(c, k) == {e \in 1..MaxOffset : e > proc[c].heads[k] /\ e >= proc[c].seen[k] /\ e <= proc[c].ends[k]}

WriteDraft(c) ==
    /\ At(c, "plan")
    /\ used < MaxIds
    /\ \E group \in SUBSET Waiting(c) \ {{}} : \E stop \in [group -> 1..MaxOffset] :
        /\ \A k \in group : stop[k] \in MayEnd(c, k)
        /\ plan' = [plan EXCEPT ![used + 1] =
            [topic |-> proc[c].topic, of |-> proc[c].of,
             runs |-> [k \in Partitions |->
                IF k \in group THEN [first |-> proc[c].heads[k], seen |-> proc[c].seen[k], end |-> stop[k]] ELSE NoRun]]]
        /\ Set(c, [proc[c] EXCEPT !.at = "link", !.id = used + 1, !.todo = group, !.won = {}, !.own = TRUE])
    /\ used' = used + 1
    /\ drafts' = IF Has("a draft is written before its links") THEN drafts \union {used + 1} ELSE drafts
    /\ UNCHANGED <<brokerVars, chainVars, manifestVars, stops>>

\* Links are create-only. One that is there already may be of this draft, or of another planner's.
Link(c) ==
    /\ At(c, "link")
    /\ \E k \in proc[c].todo :
        LET i == proc[c].id
            p == <<plan[i].topic, k>>
            run == plan[i].runs[k] IN
        /\ link' = IF link[p][run.first] = NoLink \/ ~Has("a link is never replaced")
                   THEN [link EXCEPT ![p][run.first] = [end |-> run.end, id |-> i]] ELSE link
        /\ Set(c, [proc[c] EXCEPT !.todo = @ \ {k}, !.won = IF link'[p][run.first].id = i THEN @ \union {k} ELSE @])
    /\ UNCHANGED <<brokerVars, origin, plan, drafts, manifestVars, used, stops>>

\* What goes into the manifest. Planners that settle the same draft come to the same.
Won(c) == IF Has("a manifest has no run whose link another one has") THEN proc[c].won ELSE Planned(proc[c].id)

Linked(c) == At(c, "link") /\ proc[c].todo = {}
Settled(c) == [proc[c] EXCEPT !.at = IF proc[c].own THEN "plan" ELSE "left", !.id = 0, !.won = {}]

\* Where planning goes on after a draft of this plan.
GoesOn(c, k) ==
    LET run == plan[proc[c].id].runs[k] IN
    IF k \in proc[c].won \/ ~Has("a partition whose link was lost is not planned further") THEN run.end ELSE Unknown

\* The code asks first whether the job has begun with it already; that only saves work. Its id is bound to its bytes.
\* If the id is taken, what is written is a redrive of it, by a create-only record, so that all planners write the same.
WriteManifest(c) ==
    /\ Linked(c)
    /\ written' = IF \/ Won(c) = {}
                     \/ proc[c].id \in taken /\ ~Has("a manifest whose id is taken becomes a redrive")
                  THEN written ELSE written \union {proc[c].id}
    /\ members' = [members EXCEPT ![proc[c].id] = Won(c)]
    /\ Set(c, [proc[c] EXCEPT !.at = "written",
               !.heads = [k \in Partitions |-> IF proc[c].own /\ k \in Planned(proc[c].id) THEN GoesOn(c, k) ELSE @[k]]])
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, accepted, taken, used, stops>>

\* A draft of which others got all links is of no use; any other one stays.
DropDraft(c) ==
    /\ At(c, "written")
    /\ drafts' = IF Won(c) = {} \/ ~Has("a draft stays until a job has started its manifest") THEN drafts \ {proc[c].id}
                 ELSE drafts
    /\ Set(c, Settled(c))
    /\ UNCHANGED <<brokerVars, chainVars, plan, manifestVars, used, stops>>

\* Nothing is left to plan, or no more manifests are wanted.
End(c) ==
    /\ At(c, "plan")
    /\ Waiting(c) = {} \/ proc[c].own \/ used = MaxIds
    /\ Set(c, Idle)
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, manifestVars, used, stops>>

\* The planner dies, or gives up because an answer was lost. What it has sent stays.
Stop(c) ==
    /\ ~At(c, "idle")
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ Set(c, Idle)
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, manifestVars, used>>

-----------------------------------------------------------------------------
\* An operator copies a manifest under another id into the watched prefix.
Forge ==
    /\ MayForge
    /\ used < MaxIds
    /\ \E i \in written :
        /\ plan' = [plan EXCEPT ![used + 1] = plan[i]]
        /\ members' = [members EXCEPT ![used + 1] = members[i]]
    /\ written' = written \union {used + 1}
    /\ used' = used + 1
    /\ UNCHANGED <<brokerVars, chainVars, drafts, accepted, taken, stops, proc>>

\* Someone deletes a manifest, or overwrites it with what a job refuses under another id.
Lose(i) ==
    /\ i \in written
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ written' = written \ {i}
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, members, accepted, taken, used, proc>>

\* Someone puts something else under the name of a manifest before its planner binds the id, and the job binds it to that.
Take(i) ==
    /\ i \in drafts \ taken
    /\ members[i] = {}
    /\ stops < MaxStops
    /\ stops' = stops + 1
    /\ taken' = taken \union {i}
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, written, members, accepted, used, proc>>

Given(i) ==
    \A k \in members[i] :
        link[<<plan[i].topic, k>>][plan[i].runs[k].first] = [end |-> plan[i].runs[k].end, id |-> i]

Accept(i) ==
    /\ i \in written \ accepted
    /\ Given(i) \/ ~Has("the job takes in only what a link gives")
    /\ accepted' = accepted \union {i}
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, written, members, taken, used, stops, proc>>

Refuse(i) ==
    /\ i \in written \ accepted
    /\ Has("the job takes in only what a link gives")
    /\ ~Given(i)
    /\ written' = written \ {i}
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, members, accepted, taken, used, stops, proc>>

\* Done, and out of the watched prefix.
Archive(i) ==
    /\ i \in written \intersect accepted
    /\ written' = written \ {i}
    /\ UNCHANGED <<brokerVars, chainVars, plan, drafts, members, accepted, taken, used, stops, proc>>

Progress(c) ==
    \/ Begin(c) \/ SettleLeft(c) \/ ReadHeads(c) \/ ReadRecords(c) \/ BeginChain(c) \/ WriteDraft(c) \/ Link(c)
    \/ WriteManifest(c) \/ DropDraft(c) \/ End(c)

Next ==
    \/ \E k \in Partitions : Produce(k) \/ Remove(k)
    \/ MakeAgain
    \/ Forge
    \/ \E c \in Planners : Progress(c) \/ Stop(c)
    \/ \E i \in Ids : Lose(i) \/ Take(i) \/ Accept(i) \/ Refuse(i) \/ Archive(i)

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec
    /\ \A c \in Planners : WF_vars(Progress(c))
    /\ \A i \in Ids : WF_vars(Accept(i))

-----------------------------------------------------------------------------
Links(p) == {o \in Offsets : link[p][o] # NoLink}
Covered(i, k) == plan[i].runs[k].first..plan[i].runs[k].end - 1

\* What a run names as removed before it was read, and what it has objects of.
Gap(run) == IF Has("what was removed is named") THEN run.first..Max(run.first, run.seen) - 1 ELSE {}
Landed(run) == Max(run.first, run.seen)..run.end - 1

TypesHold ==
    /\ live \in Topics
    /\ \A p \in Places : earliest[p] <= end[p] /\ end[p] <= MaxOffset
    /\ drafts \subseteq Ids /\ written \subseteq Ids /\ accepted \subseteq Ids

\* No offset is in two manifests that the job takes in.
AnEffectOnce ==
    \A i, j \in accepted : i # j /\ plan[i].topic = plan[j].topic =>
        \A k \in members[i] \intersect members[j] : Covered(i, k) \intersect Covered(j, k) = {}

\* From its origin on, a chain has each offset once; what is before it was removed before the first plan.
NoGaps ==
    \A p \in Places :
        /\ \A o \in Links(p) :
            /\ o = origin[p] \/ \E before \in Links(p) : link[p][before].end = o
            /\ \A other \in Links(p) : other <= o \/ other >= link[p][o].end
        /\ origin[p] # Unknown => origin[p] <= earliest[p]

\* A job has begun with the manifest of each link, or its draft is there.
NothingForgotten ==
    \A p \in Places : \A o \in Links(p) :
        LET i == link[p][o].id IN i \in drafts \/ (i \in accepted /\ p[2] \in members[i])

\* A job takes in whatever a planner writes, so no offset waits because another planner has a link beside it.
WrittenAreGiven == MayForge \/ \A i \in written : Given(i)

\* What is landed is of the log that the chain is of; what is named as removed was there once, and is gone.
NamedExactly ==
    \A i \in accepted : \A k \in members[i] :
        LET p == <<plan[i].topic, k>> IN
        /\ plan[i].of = plan[i].topic
        /\ \A o \in Gap(plan[i].runs[k]) : o < earliest[p]

\* Each offset of a manifest is in an object, or named.
EachIsAccounted ==
    \A i \in accepted : \A k \in members[i] : Covered(i, k) = Gap(plan[i].runs[k]) \union Landed(plan[i].runs[k])

LinksStay == [][\A p \in Places : \A o \in Links(p) : link'[p][o] = link[p][o]]_link

\* Each link ends with a manifest that the job takes in, and each offset of a topic that stays with a link, as long as
\* there are ids to try.
EachOffsetArrives ==
    \A p \in Places : \A o \in Offsets :
        /\ link[p][o] # NoLink ~> link[p][o].id \in accepted
        /\ o < end[p] ~> \/ \E i \in accepted : p[2] \in members[i] /\ plan[i].topic = p[1] /\ o \in Covered(i, p[2])
                         \/ live > p[1] \/ used = MaxIds \/ (origin[p] # Unknown /\ o < origin[p])
=============================================================================
