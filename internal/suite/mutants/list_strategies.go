package main

// Changes without a lock, and calls inside changes.
var ofStrategies = []mutant{
	{
		name: "a hold is ended by force from inside itself",
		file: "internal/nesting/refuse.go",
		old:  `f.item.Is(item) && f.name == name {`,
		new:  `f.item.Is(item) && f.name == name && f.closure != nil {`,
		by:   suite("nested", "^TestBreaksInsideTheirOwnHold$"),
	},
	{
		name: "a change is made inside a change of its item",
		file: "internal/typed/inside.go",
		old:  `return nesting.Write(ctx, nesting.ItemOf(t.Core.Table, raw), key)`,
		new:  `return nesting.Write(context.WithoutCancel(context.Background()), nesting.ItemOf(t.Core.Table, raw), key)`,
		by:   suite("nested", "^TestCallsInsideAChange$"),
	},
	{
		name: "a closure writes outside of its transaction",
		file: "internal/nesting/refuse.go",
		old:  `case !outside:`,
		new:  `case outside && item == nil:`,
		by:   suite("nested", "^TestARepositoryInsideAClosure$"),
	},
	{
		name: "a create in doubt that finds an item is refused",
		file: "internal/cas/create.go",
		old:  `if verdict == protocol.Undecided {`,
		new:  `if verdict == protocol.Undecided && c.tries > 0 {`,
		by:   test("internal/cas", "^TestCreate"),
	},
	{
		name: "an event of the same time wins",
		file: "internal/cas/create.go",
		old:  `") OR " + at + " < " + value + id + ")")`,
		new:  `") OR " + at + " <= " + value + id + ")")`,
		by:   test("nolock", "^TestLatestEventWins$"),
	},
	{
		name: "a turn in a queue lasts as long as a lock",
		file: "internal/unlocked/queue.go",
		old:  `turnLease   = 6 * time.Second`,
		new:  `turnLease   = 30 * time.Second`,
		by:   suite("copies", "^TestADeadWriterHoldsTheQueueForTheLeaseOfATurn$"),
	},
	{
		name: "a turn in a queue is not renewed",
		file: "internal/unlocked/queue.go",
		old:  `Every: turnEvery,`,
		new:  `Every: 0 * turnEvery,`,
		by:   suite("copies", "^TestALongChangeKeepsItsTurn$"),
	},
	{
		name: "a turn in a queue is renewed for ever",
		file: "internal/unlocked/queue.go",
		old:  `time.AfterFunc(longestTurn, turn.Halt)`,
		new:  `time.AfterFunc(100*longestTurn, turn.Halt)`,
		by:   suite("copies", "^TestAChangeThatHangsLosesItsTurn$"),
	},
	{
		name: "who comes to stand behind a turn refuses its write",
		file: "internal/cas/update.go",
		old:  `if !u.waiter.InTurn() {`,
		new:  `if u.waiter != nil {`,
		by:   suite("copies", "^TestALongChangeKeepsItsTurn$"),
	},
	{
		name: "an event in its turn demands that nobody has one",
		file: "internal/transaction/event.go",
		old:  `case ev.Held != nil && e.turn != nil:`,
		new:  `case ev.Held != nil && e.turn == nil:`,
		by:   suite("copies", "^TestTransactionsInTheQueue$/^cells$/^nolock_Apply,_b"),
	},
	{
		name: "a transaction fails with the turn that it has lost",
		file: "internal/transaction/call.go",
		old:  `case e.inQueue():`,
		new:  `case e.inQueue() && e.locker == nil:`,
		by:   suite("copies", "^TestTransactionsInTheQueue$/^cells$/:_a_turn"),
	},
	{
		name: "a commit refused by a lost turn fails",
		file: "internal/transaction/verdict.go",
		old:  `if p.again = p.inQueue(); !p.again {`,
		new:  `if p.again = p.inQueue() && p.locker == nil; !p.again {`,
		by:   suite("copies", "^TestTransactionsInTheQueue$/^cells$/:_its_hold"),
	},
	{
		name: "a save is bound to no version",
		file: "optimistic/save.go",
		old:  `w.IfEqual(core.Version, ddb.Integer(version))`,
		new:  `w.IfExists(core.Version)`,
		by:   test("optimistic", "^TestSaveAndRemoveAreBoundToTheVersion$"),
	},
	{
		name: "a save is not bound to the ring that was read",
		file: "optimistic/save.go",
		old:  `if base != nil {`,
		new:  `if base != nil && version < 0 {`,
		by:   test("optimistic", "^TestASave"),
	},
}

// Reading by pages.
var ofPages = []mutant{
	{
		name: "a page token opens another query",
		file: "repo/page.go",
		old:  `return &seal{cipher: t.pages, query: q.identity(), keys: q.keys}, nil`,
		new:  `return &seal{cipher: t.pages, keys: q.keys}, nil`,
		by:   suite("conformance", "^TestTokensAreBoundToTheirQuery$"),
	},
	{
		name: "a page token is not bound to the values of its query",
		file: "repo/page.go",
		old:  `		return string(text)`,
		new:  `		return ":" + string(text[:0])`,
		by:   suite("conformance", "^TestTokensAreBoundToTheirQuery$"),
	},
}
