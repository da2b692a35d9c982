package main

// Commands that one process carries out for others.
var ofCommands = []mutant{
	{
		name: "a leader that stood still carries its own commands out again",
		file: "delegate/lead.go",
		old:  "	case isTaken(answers):\n\t\tl.settled",
		new:  "	case isTaken(answers), fate == delegation.MailServed:\n\t\tl.settled",
		by:   test("delegate", "^TestALeaderThatStoodStillFindsItsWrite$"),
	},
	{
		name: "a request that has stalled tells how long all take",
		file: "delegate/place.go",
		old:  `mean(p.trip, min(trip, most))`,
		new:  `mean(p.trip, max(trip, most))`,
		by:   test("delegate", "^TestAStallIsNoTrip$"),
	},
	{
		name: "who is told that its commands were taken out may think them applied",
		file: "delegate/lead.go",
		old:  `b.fail(errTakenOut)`,
		new:  `b.fail(repo.ErrOutcomeUnknown)`,
		by:   test("delegate", "^TestAnOperatorTakesOutWhatWaits$"),
	},
	{
		name: "an item without a ring of writers is changed without one",
		file: "delegate/ring.go",
		old:  `len(r.l.e.core.Ring(image)) == 0 &&`,
		new:  `image == nil &&`,
		by:   test("delegate", "^TestAThrottledWriteHasAVerdict$"),
	},
	{
		name: "mail that was seen before another's write is carried out",
		file: "internal/delegation/decide.go",
		old:  `return read == now && !m.Answered`,
		new:  `return read <= now && !m.Answered`,
		by:   check{models, "internal/delegation", "^TestModelDelegation$"},
	},
	{
		name: "mail of an item that is gone is carried out",
		file: "internal/delegation/decide.go",
		old:  `m.Life == life && m.Seq > known`,
		new:  `m.Life != "" && life != "" && m.Seq > known`,
		by:   check{models, "internal/delegation", "^TestModelDelegation$"},
	},
	{
		name: "commands that change a unique value leave no evidence of what was served",
		file: "internal/transaction/part.go",
		old:  ` || name == e.core.Delegated`,
		new:  ``,
		by:   test("delegate", "^TestCommandsChangeAUniqueValue$"),
	},
	{
		name: "a value that is another item's fails the commands of all senders",
		file: "delegate/round.go",
		old:  `if len(r.mails) > 0 && r.claims`,
		new:  `if len(r.mails) < 0 && r.claims`,
		by:   test("delegate", "^TestCommandsChangeAUniqueValue$"),
	},
}
