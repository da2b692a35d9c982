package main

// Tickets.
var ofTickets = []mutant{
	{
		name: "a copy of a draw draws again",
		file: "ticket/requests.go",
		old:  "	q.describe(w, id, now)\n	w.IfAbsent(attrTicket + id)\n",
		new:  "	q.describe(w, id, now)\n",
		by:   test("ticket", "^TestS4_6_FaultsAtEveryRequest$|^TestModelKeepsItsPromises$"),
	},
	{
		name: "who asks only where nobody stands is let in behind others",
		file: "ticket/requests.go",
		old:  `w.If("(attribute_not_exists(" + count + ") OR " + count + " = " + zero + ")")`,
		new:  `w.If("(attribute_not_exists(" + count + ") OR " + count + " >= " + zero + ")")`,
		by:   test("ticket", "^TestS4_3_NoWaitFailsIfAnybodyIsAhead$"),
	},
	{
		name: "a late copy of a ticket's renewal moves the end back",
		file: "ticket/requests.go",
		old:  `w.If(w.Name(attrBeat+t.id) + " < " + w.Value(`,
		new:  `w.If(w.Name(attrBeat+t.id) + " <> " + w.Value(`,
		by:   suite("copies", "^TestNamed$"),
	},
	{
		name: "passing over counts one too few",
		file: "ticket/requests.go",
		old:  `count(w, -len(stale))`,
		new:  `count(w, 1-len(stale))`,
		by:   test("ticket", "^TestS4_5"),
	},
	{
		name: "an allowance for clocks is not made for tickets",
		file: "ticket/line.go",
		old:  `return e.until.Add(j.skew).Sub(wall)`,
		new:  `return e.until.Sub(wall)`,
		by:   test("ticket", "^TestS4_4_SkewAllowance"),
	},
	{
		name: "who trusts no clock passes over what it has not watched",
		file: "ticket/line.go",
		old:  "	if !w.shows(e) {\n		return e.lease\n	}\n",
		new:  "",
		by:   test("ticket", "^TestS4_4_Clockless"),
	},
	{
		name: "who was broken has left by itself",
		file: "ticket/line.go",
		old:  `(doubt || l.sameLife(number)) && !l.brokenTicket(number)`,
		new:  `(doubt || l.sameLife(number))`,
		by:   test("ticket", "^TestVerdictsBesideABreak$|^TestBreakOf"),
	},
	{
		name: "who was passed over has left by itself",
		file: "ticket/line.go",
		old:  `return l.left == number || !expired && (`,
		new:  `return l.left == number || (`,
		by:   test("ticket", "^TestEvidence|^TestS4_4|^TestModelKeepsItsPromises$|^TestDone"),
	},
}

// Permits, and the row that counts them.
var ofSemaphores = []mutant{
	{
		name: "a copy of a release gives another's permit back",
		file: "semaphore/permit.go",
		old:  "	s.table.GiveBack(w)\n	w.IfExists(attr)\n",
		new:  "	s.table.GiveBack(w)\n",
		by:   test("semaphore", "^TestLostAnswersOfPermits$"),
	},
	{
		name: "dead letters are forgotten with their resource",
		file: "internal/resources/limit.go",
		old: `range []string{aQueued, aRunning, aDead, aLater} {
			none`,
		new: `range []string{aQueued, aRunning, aLater} {
			none`,
		by: test("jobs", "^TestDeadLettersKeepTheirResource$"),
	},
	{
		name: "one permit more than the limit",
		file: "semaphore/acquire.go",
		old:  `s.table.If(w, resources.ForOneMore)`,
		new:  `s.table.If(w, resources.ForTheSame)`,
		by:   test("semaphore", "^TestHeldPermitsUseUpTheLimit$"),
	},
	{
		name: "a permit's token is not drawn",
		file: "internal/resources/limit.go",
		old: `	count(w, aRunning, 1)
	count(w, aChanges, 1)
	t.NextToken(w, now)`,
		new: `	count(w, aRunning, 1)
	count(w, aChanges, 1)
	w.SetTo(aToken, "if_not_exists("+w.Name(aToken)+", "+w.Value(ddb.Integer(now.UnixMicro()))+")")`,
		by: test("semaphore", "^TestHeldPermitsUseUpTheLimit$"),
	},
	{
		name: "the limit of a program counts where another was set for all",
		file: "internal/resources/limit.go",
		old:  `below = "(attribute_exists(" + fixed + ") AND " + below + " OR attribute_not_exists(" + fixed + ") AND "`,
		new:  `below = "(attribute_exists(" + fixed + ") AND " + below + " OR "`,
		by:   test("jobs", "^TestProgramsWithDifferentLimits$|^TestS5_4_LimitsThatChange"),
	},
	{
		name: "an end past its deadline was the holder's own",
		file: "internal/resources/end.go",
		old:  `case silent, expired:`,
		new:  `case silent:`,
		by:   test("internal/resources", "^TestModel"),
	},
	{
		name: "an end does not believe evidence of others",
		file: "internal/resources/end.go",
		old:  `case told:`,
		new:  `case told && silent && expired:`,
		by:   test("internal/resources", "^TestModel"),
	},
	{
		name: "a late copy of a permit's renewal moves the end back",
		file: "semaphore/permit.go",
		old:  "	w.Set(h.attr, end)\n	w.If(w.Name(h.attr) + \" < \" + w.Value(end))",
		new:  "	w.Set(h.attr, end)\n	w.If(w.Name(h.attr) + \" <> \" + w.Value(end))",
		by:   suite("copies", "^TestNamed$"),
	},
	{
		name: "a permit that was refused beside a copy is not looked for",
		file: "semaphore/acquire.go",
		old:  `, Stands: func(row ddb.Item) bool { return row[a.attr] == nil },`,
		new:  `,`,
		by:   suite("copies", "^TestDenied$/^semaphore,_TryAcquire$"),
	},
	{
		name: "a lock that was refused beside a copy is not looked for",
		file: "internal/lock/acquire.go",
		old:  `Stands:  a.notTaken,`,
		new:  ``,
		by:   suite("copies", "^TestDenied$/^once,_Do$"),
	},
	{
		name: "a break leaves no evidence on its resource",
		file: "internal/resources/broken.go",
		old:  "	w.Set(brokenPrefix+name, end)\n",
		new:  "",
		by:   test("jobs", "^TestBreakJob$|^TestVerdictsOfBreaks"),
	},
}

// Jobs.
var ofJobs = []mutant{
	{
		name: "a start does not count the attempt",
		file: "jobs/start.go",
		old:  `ddb.Integer(int64(j.attempts+1))`,
		new:  `ddb.Integer(int64(j.attempts))`,
		by:   test("jobs", "^TestS5_5_AJobThatKillsItsHoldersDies$"),
	},
	{
		name: "a job that is given back counts as an attempt",
		file: "jobs/end.go",
		old:  `ddb.Integer(int64(j.row.attempts-1))`,
		new:  `ddb.Integer(int64(j.row.attempts))`,
		by:   test("jobs", "^TestReturnDoesNotCountTheAttempt$"),
	},
	{
		name: "a job has one attempt more",
		file: "jobs/row.go",
		old:  "return j.attempts >= cmp.Or(",
		new:  "return j.attempts > cmp.Or(",
		by:   test("jobs", "^TestS5_5_FailedWorkIsRetriedThenDead$"),
	},
	{
		name: "a job that others work on was ended by its own handler",
		file: "jobs/end.go",
		old:  "broken, known := j.broken(ctx)",
		new:  "_, known := j.broken(ctx)\n	broken := false",
		by:   test("jobs", "^TestBreakJob$|^TestVerdictsOfBreaks"),
	},
	{
		name: "several processes enqueue the job of a tick",
		file: "jobs/periodic.go",
		old:  "	w.IfSeen(t.row, aSpec, aNext)\n",
		new:  "",
		by:   test("jobs", "^TestTicksInAStorm$"),
	},
	{
		name: "nobody is told of a job whose enqueue has no answer",
		file: "jobs/enqueue.go",
		old:  "err == nil || errors.Is(err, repo.ErrOutcomeUnknown) }",
		new:  "err == nil }",
		by:   test("jobs", "^TestAJobWhoseEnqueueIsUnknownStartsAtOnce$"),
	},
	{
		name: "a schedule is forgotten that has moved on",
		file: "jobs/schedules.go",
		old:  "	w.IfSeen(row, aSpec, aNext) ",
		new:  "	w.IfExists(aSpec) ",
		by:   test("jobs", "^TestSchedulesAreForgotten$"),
	},
	{
		name: "a job is cancelled, or moved, that was started meanwhile",
		file: "jobs/find.go",
		old:  "	j.asRead(w)\n	return ddb.DeleteOf",
		new:  "	w.IfExists(resources.PK)\n	return ddb.DeleteOf",
		by:   test("jobs", "^TestAJobIsStartedBeforeItIsTakenAway$"),
	},
	{
		name: "an end waits for a start that will not come",
		file: "jobs/follow.go",
		old:  "		defer release()\n",
		new:  "		_ = release\n",
		by:   test("jobs", "^TestAHeldEndIsSentInTime$"),
	},
	{
		name: "an end waits although its lease ends soon",
		file: "jobs/follow.go",
		old:  "	case f.left < leastLeft:\n		return leaseEnds\n",
		new:  "",
		by:   test("jobs", "^TestWhetherAnEndWaits$|^TestAHeldEndIsSentInTime$"),
	},
	{
		name: "an end whose start was refused is sent without the next try",
		file: "jobs/together.go",
		old:  "st.holdAgain(f, again)",
		new:  "again",
		by:   test("jobs", "^TestAHeldEndWaitsForTheNextTry$"),
	},
}
