------------------------------ MODULE Closing ------------------------------
(* How dates are closed: processes verify what is in no summary and add a summary of it to a log, while manifests end, *)
(* are rebuilt and redriven, and readers sum up what the log, the marks and the index of open manifests show.          *)
(* It begins when manifests are accepted; Commit and Rebuild have how each comes to its outcomes. Any driver may       *)
(* repeat any step of a manifest at any later time, and so may one that was held up.                                   *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Manifests,
          Unmarked,       \* those that a job of an earlier release brought to done: they have no mark
          Letters,        \* those that are dead letters; they are redriven, and not rebuilt
          Second,         \* those of a second date
          MaxGenerations,
          Closers, Readers,
          MayStop,        \* whether a process may stop at any step
          Guards

Generations == 1..MaxGenerations
Dates == IF Second = {} THEN {1} ELSE {1, 2}
DateOf(m) == IF m \in Second THEN 2 ELSE 1
Last(m) == IF m \in Letters THEN 1 ELSE MaxGenerations
Ends == {<<m, g>> \in Manifests \X Generations : g <= Last(m)}
MaxPlaces == Cardinality(Ends) + 1
Has(guard) == guard \in Guards

VARIABLES
    delivered, \* the manifests in the watched prefix
    open,      \* the markers in the index of open manifests, each with its generation
    decided, done, \* the generation of each manifest that is decided, and that is done; 0 for none
    whole,     \* the manifests whose files are all there
    marks,     \* of what is in no summary
    dateMarks, \* of whole dates, each with the closer that set it
    marked,    \* what was marked at some time
    begun,     \* whether it is declared that everything is open, marked or in a summary
    log,       \* the summaries, by their places
    redrive,   \* of each dead letter
    sent,      \* deletes of marks that may still take effect
    closer, reader

life == <<delivered, open, decided, done, whole, marked, redrive>>
vars == <<life, marks, dateMarks, begun, log, sent, closer, reader>>

NoDate == 0
Never == -1
Resting == [at |-> "idle", date |-> NoDate, marks |-> {}, dateMarks |-> {}, read |-> 0, members |-> {},
            verified |-> TRUE, upto |-> 0, compared |-> Never]
Waiting == [at |-> "idle", since |-> [m \in Manifests |-> 0], listed |-> {}, found |-> {}, upto |-> 0, wrong |-> {}]

Init ==
    /\ delivered = Manifests \ Unmarked
    /\ open = {}
    /\ decided = [m \in Manifests |-> IF m \in Unmarked THEN 1 ELSE 0]
    /\ done = decided
    /\ whole = Manifests
    /\ marks = {}
    /\ dateMarks = {}
    /\ marked = {<<m, 1>> : m \in Unmarked}
    /\ begun = FALSE
    /\ log = <<>>
    /\ redrive = [m \in Letters |-> "none"]
    /\ sent = {}
    /\ closer = [c \in Closers |-> Resting]
    /\ reader = [r \in Readers |-> Waiting]

-----------------------------------------------------------------------------
\* What the first summaries of the log say.
Highest(numbers) == CHOOSE n \in numbers : \A other \in numbers : other <= n
PlacesOf(m, upto) == {p \in 1..upto : \E g \in Generations : <<m, g>> \in log[p].members}
Summarised(m, upto) ==
    IF PlacesOf(m, upto) = {} THEN 0
    ELSE CHOOSE g \in Generations : <<m, g>> \in log[Highest(PlacesOf(m, upto))].members
SummariesOf(date, upto) == {p \in 1..upto : log[p].date = date}
Counted(m, g, upto) ==
    Cardinality({p \in 1..upto : <<m, g>> \in log[p].members}) - Cardinality({p \in 1..upto : <<m, g>> \in log[p].back})
Named(upto) == (UNION {log[p].letters : p \in 1..upto}) \ UNION {log[p].redriven : p \in 1..upto}

\* What a listing of the records of a date shows.
Recorded(date) == {<<m, decided[m]>> : m \in {each \in Manifests : DateOf(each) = date /\ decided[each] > 0}}
NewestOf(found, m) == Highest({0} \union {end[2] : end \in {each \in found : each[1] = m}})

-----------------------------------------------------------------------------
\* The life of a manifest: drivers and rebuilds.
Open(m, g) ==
    /\ <<m, g>> \in Ends \ open
    /\ g <= done[m] + 1 /\ <<m, g>> \notin {<<each, 1>> : each \in Unmarked}
    /\ open' = open \union {<<m, g>>}
    /\ UNCHANGED <<delivered, decided, done, whole, marked, redrive, marks, dateMarks, begun, log, sent, closer, reader>>

Decide(m) ==
    /\ decided[m] = done[m] /\ decided[m] < Last(m)
    /\ \/ <<m, decided[m] + 1>> \in open
       \/ decided[m] > 0 /\ ~Has("a rebuild is open before it is decided")
    /\ decided' = [decided EXCEPT ![m] = @ + 1]
    /\ UNCHANGED <<delivered, open, done, whole, marked, redrive, marks, dateMarks, begun, log, sent, closer, reader>>

Finish(m) ==
    /\ done[m] < decided[m]
    /\ done' = [done EXCEPT ![m] = decided[m]]
    /\ whole' = whole \union {m}
    /\ UNCHANGED <<delivered, open, decided, marked, redrive, marks, dateMarks, begun, log, sent, closer, reader>>

\* Also by a driver that was held up when others had finished.
Mark(m, g) ==
    LET mark == <<m, IF Has("a mark names its generation") THEN g ELSE 1>> IN
    /\ g <= done[m] /\ <<m, g>> \in Ends \ {<<each, 1>> : each \in Unmarked}
    /\ mark \notin marks \/ <<m, g>> \notin marked
    /\ marks' = marks \union {mark}
    /\ marked' = marked \union {<<m, g>>}
    /\ UNCHANGED <<delivered, open, decided, done, whole, redrive, dateMarks, begun, log, sent, closer, reader>>

IsMarked(m, g) == (\E h \in g..MaxGenerations : <<m, h>> \in marked) \/ ~Has("a manifest is marked before it leaves the index")

Remove(m) ==
    /\ m \in delivered
    /\ done[m] > 0 /\ IsMarked(m, 1)
    /\ delivered' = delivered \ {m}
    /\ UNCHANGED <<open, decided, done, whole, marked, redrive, marks, dateMarks, begun, log, sent, closer, reader>>

\* The delete may take effect late.
Close(m, g) ==
    /\ <<m, g>> \in open
    /\ done[m] >= g /\ m \notin delivered /\ IsMarked(m, g)
    /\ open' = open \ {<<m, g>>}
    /\ UNCHANGED <<delivered, decided, done, whole, marked, redrive, marks, dateMarks, begun, log, sent, closer, reader>>

\* Files of a manifest that may be rebuilt are lost.
Damage(m) ==
    /\ m \in whole
    /\ done[m] > 0 /\ decided[m] = done[m] /\ done[m] < Last(m)
    /\ whole' = whole \ {m}
    /\ UNCHANGED <<delivered, open, decided, done, marked, redrive, marks, dateMarks, begun, log, sent, closer, reader>>

\* A redrive of a dead letter is put on record, its manifest is written, and the job accepts it; or a planner revokes it.
Redrive(m) ==
    /\ m \in Letters
    /\ done[m] > 0
    /\ \E step \in {<<"none", "recorded">>, <<"recorded", "delivered">>, <<"delivered", "accepted">>,
                    <<"recorded", "none">>, <<"delivered", "none">>} :
        redrive[m] = step[1] /\ redrive' = [redrive EXCEPT ![m] = step[2]]
    /\ UNCHANGED <<delivered, open, decided, done, whole, marked, marks, dateMarks, begun, log, sent, closer, reader>>

-----------------------------------------------------------------------------
\* Closing. A closer works on one date after the other, and begins anew with each.
At(c, step) == closer[c].at = step
Set(c, changed) == closer' = [closer EXCEPT ![c] = changed]

\* One date after the other, of those that have records.
MarkDate(c) ==
    LET date == IF At(c, "idle") THEN 1 ELSE closer[c].date + 1 IN
    /\ (At(c, "idle") /\ ~begun) \/ At(c, "begin")
    /\ date \in Dates
    /\ \E isMarked \in IF Recorded(date) = {} THEN {TRUE, FALSE} ELSE {Has("dates are marked before closing begins")} :
        dateMarks' = IF isMarked THEN dateMarks \union {<<date, c>>} ELSE dateMarks
    /\ Set(c, [Resting EXCEPT !.at = "begin", !.date = date])
    /\ UNCHANGED <<life, marks, begun, log, sent, reader>>

Begin(c) ==
    /\ At(c, "begin")
    /\ closer[c].date = Cardinality(Dates)
    /\ begun' = TRUE
    /\ Set(c, Resting)
    /\ UNCHANGED <<life, marks, dateMarks, log, sent, reader>>

ListMarks(c) ==
    /\ At(c, "idle")
    /\ begun
    /\ \E date \in Dates :
        LET own == {mark \in marks : DateOf(mark[1]) = date}
            ofDate == {mark \in dateMarks : mark[1] = date} IN
        /\ own # {} \/ ofDate # {}
        /\ Set(c, [Resting EXCEPT !.at = "log", !.date = date, !.marks = own, !.dateMarks = ofDate])
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, reader>>

ReadLog(c) ==
    /\ At(c, "log")
    /\ Set(c, [closer[c] EXCEPT !.at = "records", !.read = Len(log)])
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, reader>>

\* Only marks that were there when the records were read, of what is in a summary.
Cleared(c, upto) ==
    (IF Has("only marks of what is in a summary are deleted")
     THEN {mark \in closer[c].marks : mark[2] <= Summarised(mark[1], upto)}
     ELSE {mark \in marks : DateOf(mark[1]) = closer[c].date}) \union closer[c].dateMarks

\* All records of a date that is not closed or is marked, and those of the marks.
ReadRecords(c) ==
    LET me == closer[c]
        listed == IF SummariesOf(me.date, me.read) = {} \/ me.dateMarks # {} THEN Recorded(me.date) ELSE {}
        found == me.marks \union listed
        fresh == {m \in Manifests : \/ NewestOf(found, m) > Summarised(m, me.read)
                                    \/ /\ NewestOf(found, m) > 0
                                       /\ ~Has("what is in a summary is not summarised again")} IN
    /\ At(c, "records")
    /\ IF fresh = {}
       THEN sent' = sent \union Cleared(c, me.read) /\ Set(c, Resting)
       ELSE Set(c, [me EXCEPT !.at = "verify", !.members = {<<m, 0>> : m \in fresh}]) /\ UNCHANGED sent
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, reader>>

\* The newest outcome of each has to be done, with all of its files.
Verify(c) ==
    LET keys == {end[1] : end \in closer[c].members}
        isRight == \A m \in keys : decided[m] > 0 /\ done[m] = decided[m] /\ m \in whole
        members == {<<m, decided[m]>> : m \in {each \in keys : decided[each] > 0}} IN
    /\ At(c, "verify")
    /\ Set(c, IF isRight \/ ~Has("only what was verified is summarised")
              THEN [closer[c] EXCEPT !.at = "compare", !.members = members, !.verified = isRight]
              ELSE Resting)
    /\ sent' = IF Has("marks are deleted after the summary is written") THEN sent
               ELSE sent \union closer[c].marks \union closer[c].dateMarks
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, reader>>

\* Read the log again, and compare the file versions with those of all summaries.
Compare(c) ==
    LET me == closer[c]
        isTaken == SummariesOf(me.date, Len(log)) # SummariesOf(me.date, me.read)
        again == me.compared = Never \/ Has("file versions are compared again when a place was lost") IN
    /\ At(c, "compare")
    /\ Set(c, IF isTaken /\ Has("a closer gives up if another one has summarised its date") THEN Resting
              ELSE [me EXCEPT !.at = "create", !.upto = Len(log), !.compared = IF again THEN Len(log) ELSE @])
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, reader>>

\* What its date has in the log is taken back where it is summarised again. Dead letters of all dates are looked up, and
\* those of its own once more, after the log was read: what another closing has settled meanwhile is not named.
Summary(c) ==
    LET me == closer[c]
        again == {<<end[1], Summarised(end[1], me.read)>> : end \in me.members} IN
    [date |-> me.date, members |-> me.members, verified |-> me.verified, compared |-> me.compared,
     letters |-> {m \in {end[1] : end \in me.members} \intersect Letters :
                    IF Has("a summary names each dead letter whose redrive is not accepted")
                    THEN redrive[m] # "accepted" ELSE redrive[m] = "none"},
     back |-> IF Has("an addition takes back what it supersedes") THEN {end \in again : end[2] > 0} ELSE {},
     redriven |-> {m \in Named(me.upto) :
                    redrive[m] \in IF Has("only a dead letter whose redrive is accepted is taken back")
                                   THEN {"accepted"} ELSE {"recorded", "delivered", "accepted"}}]

Create(c) ==
    LET place == closer[c].upto + 1 IN
    /\ At(c, "create")
    /\ place <= MaxPlaces
    /\ IF place > Len(log)
       THEN log' = Append(log, Summary(c)) /\ Set(c, [closer[c] EXCEPT !.at = "clear"])
       ELSE IF Has("a place in the log is create-only")
       THEN Set(c, [closer[c] EXCEPT !.at = "compare"]) /\ UNCHANGED log
       ELSE log' = [log EXCEPT ![place] = Summary(c)] /\ Set(c, [closer[c] EXCEPT !.at = "clear"])
    /\ UNCHANGED <<life, marks, dateMarks, begun, sent, reader>>

Clear(c) ==
    /\ At(c, "clear")
    /\ sent' = sent \union Cleared(c, closer[c].upto + 1)
    /\ Set(c, Resting)
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, reader>>

\* The process dies, or gives up for now because an answer was lost.
Stop(c) ==
    /\ MayStop
    /\ ~At(c, "idle")
    /\ Set(c, Resting)
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, reader>>

\* A mark is deleted.
Land(mark) ==
    /\ mark \in sent
    /\ sent' = sent \ {mark}
    /\ marks' = marks \ {mark}
    /\ dateMarks' = dateMarks \ {mark}
    /\ UNCHANGED <<life, begun, log, closer, reader>>

-----------------------------------------------------------------------------
\* A reader, as `verify`: its steps, in the order in which it reads.
Order ==
    CASE ~Has("open manifests are read before marks") -> <<"marks", "open", "markers", "waiting", "log", "records">>
      [] ~Has("marks are read before summaries") -> <<"open", "markers", "waiting", "log", "marks", "records">>
      [] OTHER -> <<"open", "markers", "waiting", "marks", "log", "records">>
After(step) == LET at == CHOOSE n \in 1..Len(Order) : Order[n] = step IN Order[at + 1]
Reads(r, step) == reader[r].at = step
Found(r, more) == reader' = [reader EXCEPT ![r].at = After(@), ![r].listed = {}, ![r].found = @ \union more]

\* Before closing has begun, it reads all records instead.
Start(r) ==
    /\ Reads(r, "idle")
    /\ begun \/ ~Has("summaries are believed only when closing has begun")
    /\ reader' = [reader EXCEPT ![r].at = Order[1], ![r].since = done]
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, closer>>

ReadOpen(r) ==
    /\ Reads(r, "open")
    /\ reader' = [reader EXCEPT ![r].at = After(@), ![r].listed = open]
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, closer>>

\* Of the markers that it has listed, some are gone when it reads them: their manifests are marked by now.
ReadMarkers(r) ==
    /\ Reads(r, "markers")
    /\ Found(r, {<<end[1], IF Has("an open marker names its generation") THEN end[2] ELSE 1>> :
                  end \in reader[r].listed \intersect open})
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, closer>>

ReadWaiting(r) ==
    /\ Reads(r, "waiting")
    /\ Found(r, {<<m, 1>> : m \in delivered})
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, closer>>

ReadMarks(r) ==
    /\ Reads(r, "marks")
    /\ Found(r, marks \union UNION {Recorded(mark[1]) : mark \in dateMarks})
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, closer>>

ReadSummaries(r) ==
    /\ Reads(r, "log")
    /\ reader' = [reader EXCEPT ![r].at = After(@), ![r].upto = Len(log)]
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, closer>>

\* What it counts of a manifest: the generations, each so many times, and whether it is unfinished.
IsKey(r, m) == NewestOf(reader[r].found, m) > Summarised(m, reader[r].upto)
IsUnfinished(r, m) == IsKey(r, m) /\ (decided[m] = 0 \/ done[m] < decided[m])
Tally(r, m, g) ==
    Counted(m, g, reader[r].upto)
    + (IF IsKey(r, m) /\ ~IsUnfinished(r, m) /\ decided[m] = g THEN 1 ELSE 0)
    - (IF IsKey(r, m) /\ Summarised(m, reader[r].upto) = g /\ Has("a reader takes back what was rebuilt since") THEN 1 ELSE 0)

\* Each manifest is counted once, by an outcome that is no older than the one that was done when it began to read.
IsRight(r, m) ==
    LET counted == {g \in Generations : Tally(r, m, g) # 0} IN
    IF IsUnfinished(r, m) THEN counted = {}
    ELSE /\ Cardinality(counted) = 1
         /\ \A g \in counted : Tally(r, m, g) = 1 /\ g >= reader[r].since[m]

ReadOutcomes(r) ==
    /\ Reads(r, "records")
    /\ reader' = [reader EXCEPT ![r] = [Waiting EXCEPT !.at = "told", !.wrong = {m \in Manifests : ~IsRight(r, m)}]]
    /\ UNCHANGED <<life, marks, dateMarks, begun, log, sent, closer>>

-----------------------------------------------------------------------------
Progress(c) ==
    \/ MarkDate(c) \/ Begin(c) \/ ListMarks(c) \/ ReadLog(c) \/ ReadRecords(c) \/ Verify(c) \/ Compare(c) \/ Create(c) \/ Clear(c)

Next ==
    \/ \E m \in Manifests : Decide(m) \/ Finish(m) \/ Remove(m) \/ Damage(m) \/ Redrive(m)
    \/ \E m \in Manifests, g \in Generations : Open(m, g) \/ Mark(m, g) \/ Close(m, g)
    \/ \E c \in Closers : Progress(c) \/ Stop(c)
    \/ \E mark \in sent : Land(mark)
    \/ \E r \in Readers :
        \/ Start(r) \/ ReadOpen(r) \/ ReadMarkers(r) \/ ReadWaiting(r)
        \/ ReadMarks(r) \/ ReadSummaries(r) \/ ReadOutcomes(r)

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec
    /\ \A m \in Manifests : WF_vars(Decide(m)) /\ WF_vars(Finish(m)) /\ WF_vars(Mark(m, 1)) /\ WF_vars(Open(m, 1))
    /\ \A c \in Closers : WF_vars(Progress(c))

-----------------------------------------------------------------------------
TypesHold ==
    /\ \A m \in Manifests : done[m] <= decided[m]
    /\ \A p \in 1..Len(log) : log[p].members \subseteq Ends

\* A manifest has the effect of one in the sums of the log, by one of its generations.
AnEffectOnce ==
    \A m \in Manifests :
        LET counted == {g \in Generations : Counted(m, g, Len(log)) # 0} IN
        /\ Cardinality(counted) <= 1
        /\ \A g \in counted : Counted(m, g, Len(log)) = 1

\* A closing that died or lost its answer, or was held up, is not repeated.
NoneIsSummarisedAgain ==
    \A p, q \in 1..Len(log) : p # q => log[p].members \intersect log[q].members = {}

\* Whoever reads finds each manifest in the log, or open, or marked, and never in two of them.
ReadersCountOnce == \A r \in Readers : reader[r].wrong = {}

NothingClosedUnverified == \A p \in 1..Len(log) : log[p].verified

\* Each summary was compared with all before it, so that doubles between any two are found.
EachIsCompared == \A p \in 1..Len(log) : log[p].compared = p - 1

\* A dead letter is named until its redrive is accepted: what names it is where an interrupted redrive is found again.
NothingForgotten ==
    \A m \in Letters : Summarised(m, Len(log)) > 0 /\ redrive[m] # "accepted" => m \in Named(Len(log))

SummariesStay == [][\A p \in 1..Len(log) : p <= Len(log') /\ log'[p] = log[p]]_vars

\* Each manifest comes into a summary.
EachIsClosed == \A m \in Manifests : <>(Summarised(m, Len(log)) = Last(m))
=============================================================================
