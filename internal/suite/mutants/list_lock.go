package main

// The queue on an item.
var ofQueues = []mutant{
	{
		name: "entries of two who wait are alike",
		file: "internal/protocol/queue.go",
		old:  `"NOT contains(#lockQueue, :mine) AND`,
		new:  `"NOT contains(#lockedBy, :mine) AND`,
		by:   test("internal/lock", "^TestQueueEntryOfAnother$"),
	},
	{
		name: "a takeover does not ask whether its taker still stands in the queue",
		file: "internal/protocol/queue.go",
		old:  "	w.IfWaits(own)\n",
		new:  "",
		by:   test("internal/lock", "^TestATakeoverIsOfWhatWasWatched$"),
	},
	{
		name: "a takeover from the queue takes what was renewed",
		file: "internal/protocol/queue.go",
		old:  `w.IfSeen(t.Watched, a.LockedBy, a.LockTime, a.LockHeld)`,
		new:  `w.IfSeen(t.Watched, a.LockedBy)`,
		by:   test("internal/lock", "^TestATakeoverIsOfWhatWasWatched$"),
	},
	{
		name: "who leaves the queue clears another's place",
		file: "internal/protocol/queue.go",
		old:  "	w.If(at, \" = \", w.Value(entry(stored.EntryOf(id))))\n",
		new:  "",
		by:   test("internal/lock", "^TestQueue"),
	},
	{
		name: "a lock is handed over to one who has left",
		file: "internal/protocol/write.go",
		old:  "	w.IfWaits(to)\n",
		new:  "",
		by:   test("internal/lock", "^TestEndMeetsOneWhoHasLeft$"),
	},
	{
		name: "a lock becomes free although somebody has come",
		file: "internal/lock/transfer.go",
		old:  "		w.IfNoNewWaiter(h.lastToken)\n		return",
		new:  "		return",
		by:   test("internal/lock", "^TestEndMeetsANewWaiter$"),
	},
	{
		name: "a lock that is handed over takes the token of the one before",
		file: "internal/lock/transfer.go",
		old:  `w.Transfer(h.queue[0], h.own, h.token+1,`,
		new:  `w.Transfer(h.queue[0], h.own, h.token,`,
		by:   suite("fair", "^TestServiceInTheOrderOfArrival$"),
	},
	{
		name: "all in the queue take over at once",
		file: "internal/lock/takeover.go",
		old:  `steps := time.Duration(ahead) * q.locker.step()`,
		new:  `steps := min(0, time.Duration(ahead)*q.locker.step())`,
		by:   test("internal/lock", "^TestTakeoversComeInOrder$"),
	},
	{
		name: "another's entry passes for one's own",
		file: "internal/lock/takeover.go",
		old:  `return q.order != nil && (`,
		new:  `return q.order != nil || (`,
		by:   test("internal/lock", "^TestQueueEntry"),
	},
	{
		name: "whoever stands anywhere proves that an entry is one's own",
		file: "internal/protocol/entries.go",
		old:  `at >= 0 && (at < was) == (i < is) {`,
		new:  `at >= 0 && (at < was) != (i < is) {`,
		by:   test("internal/lock", "^TestQueueEntry"),
	},
	{
		name: "a place that is left makes others move under a hold",
		file: "internal/stored/queue.go",
		old:  `if q[i].Place > place {`,
		new:  `if q[i].Place < place {`,
		by:   test("internal/lock", "^TestQueueMovesUpWithinTheProcess$"),
	},
}

// The lock of an item: acquire, end, and what is found out behind a lost answer.
var ofLocks = []mutant{
	{
		name: "a lock's deadline counts from its answer",
		file: "internal/lock/acquire.go",
		old:  `end := sent.Add(a.locker.Lease)`,
		new:  `end := time.Now().Add(a.locker.Lease)`,
		by:   test("internal/lock", "^TestTheDeadlineCountsFromTheRequest$"),
	},
	{
		name: "a try without an answer is forgotten",
		file: "internal/lock/acquire.go",
		old:  "		a.mayHold = a.mayHold.and(a.id, a.sent, a.locker.landing())\n",
		new:  "",
		by:   test("internal/lock", "^TestAcquireGivenUpLeavesNothing$"),
	},
	{
		name: "a lock whose lease is over is given to its caller",
		file: "internal/lock/acquire.go",
		old:  `if err == nil && a.locker.late(end, l.Until) {`,
		new:  `if err == nil && a.locker.late(end, l.Until) && l.Held < 0 {`,
		by:   test("mutex", "^TestALockThatIsFoundAgainTooLateIsTakenAnew$"),
	},
	{
		name: "which of two commits has ended the lock is told by chance",
		file: "internal/lock/end.go",
		old:  `case err == nil && e.writes() && h.inDoubt:`,
		new:  `case err == nil && e.writes() && h.inDoubt && replaced:`,
		by:   test("internal/lock", "^TestOneOfTwoCommits$"),
	},
	{
		name: "a commit in doubt is not remembered",
		file: "internal/lock/end.go",
		old:  "	if e.writes() {\n		e.lock.doubt(e.As == Delete)\n	}\n",
		new:  "",
		by:   test("internal/lock", "^TestAfterACommitInDoubt$"),
	},
	{
		name: "a hold that a lost write may have left to the process is not looked for",
		file: "internal/lock/end.go",
		old:  "	if e.KeepLocal {\n		e.next.doubt()\n	}\n",
		new:  "",
		by:   test("internal/lock", "^TestEndWithoutAVerdictLeavesAnOrphan$"),
	},
	{
		name: "an unknown outcome claims that nothing was written",
		file: "internal/lock/doubt.go",
		old:  "		if target == claim {\n			return false",
		new:  "		if target == claim {\n			return true",
		by:   test("internal/lock", "^TestUnknownOutcomeClaimsNothing$"),
	},
}

// Leases: deadline and renewal.
var ofLeases = []mutant{
	{
		name: "a keeper's deadline has no margin",
		file: "internal/lease/lease.go",
		old:  `{ return min(length/10, maxMargin) }`,
		new:  `{ return min(length/1000, maxMargin) }`,
		by:   test("internal/lease", "^TestDeadline"),
	},
	{
		name: "a renewal's deadline counts from its answer",
		file: "internal/lease/request.go",
		old:  `l.end, l.ahead = asked.Add(l.cfg.Length), l.next`,
		new:  `l.end, l.ahead = time.Now().Add(l.cfg.Length), l.next`,
		by:   test("internal/lease", "^TestARenewalCountsFromWhenItWasSent$"),
	},
	{
		name: "a lease is renewed after its end",
		file: "internal/lease/request.go",
		old:  "	if cause := l.Cause(); cause != nil {\n		return l.kind.Describe(cause)\n	}\n	asked, until",
		new:  "	asked, until",
		by:   test("internal/lease", "^TestWhatIsOverIsNotExtended$"),
	},
	{
		name: "what comes after the end revives a lease",
		file: "internal/lease/request.go",
		old:  "	if cause := l.Cause(); cause != nil { // somebody has been told meanwhile that it is over\n		return l.kind.Describe(cause)\n	}\n",
		new:  "",
		by:   test("internal/lease", "^TestAnExtensionThatIsAnsweredTooLate$"),
	},
	{
		name: "a lease lasts as long as the slower clock says",
		file: "internal/lease/lease.go",
		old:  `return !now.Before(until) || !now.Round(0).Before(until.Round(0))`,
		new:  `return !now.Before(until) && !now.Round(0).Before(until.Round(0))`,
		by:   test("internal/lease", "^TestEitherClockEndsIt$"),
	},
	{
		name: "ends go back with the clock",
		file: "internal/lease/request.go",
		old:  `ddb.Later(now.Add(l.cfg.Length), l.sent)`,
		new:  `now.Add(l.cfg.Length)`,
		by:   test("internal/lease", "^TestEndsOnlyGrow$"),
	},
	{
		name: "a hold that is gone was lost, although its end had no answer",
		file: "internal/lease/request.go",
		old:  "	if l.inDoubt {\n		l.Finish(repo.ErrReleased)",
		new:  "	if l.inDoubt && l.Ended() != nil {\n		l.Finish(repo.ErrReleased)",
		by:   test("internal/lease", "^TestWhatIsFoundGone$"),
	},
	{
		name: "the last write runs beside a renewal",
		file: "internal/lease/request.go",
		old:  "	l.ending++\n	if l.stopRenew != nil {\n		l.stopRenew()\n	}\n",
		new:  "	l.ending++\n",
		by:   test("internal/lease", "^TestTheLastWriteRunsAlone$|^TestExtensionsGiveWay$"),
	},
}
