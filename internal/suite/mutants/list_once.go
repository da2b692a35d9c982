package main

// Ids of operations.
var ofOnce = []mutant{
	{
		name: "an item forgets its ids with each epoch",
		file: "internal/protocol/once.go",
		old:  "	if present != nil {\n",
		new:  "	if present != nil && epoch < 0 {\n",
		by:   lockless("^TestModelOnce$"),
	},
	{
		name: "an epoch's ids are dropped while it lasts",
		file: "internal/protocol/once.go",
		old:  `ok && known >= epoch {`,
		new:  `ok && known > epoch {`,
		by:   model("^TestRememberInEpochTen$"),
	},
	{
		name: "an unread write does not look among past ids",
		file: "internal/lockless/once.go",
		old:  `bs + ") AND NOT contains(" + past + ", " + id + "))"`,
		new:  `bs + ") AND NOT contains(" + past + ", " + bs + "))"`,
		by:   suite("once", "^TestTheEpochsOfAnItem$"),
	},
	{
		name: "an unread write does not look among present ids",
		file: "internal/lockless/once.go",
		old:  `bs + ") AND NOT contains(" + set + ", " + id + ")" +`,
		new:  `bs + ") AND NOT contains(" + set + ", " + bs + ")" +`,
		by:   suite("once", "^TestAMessageChangesAnItemOnce$"),
	},
	{
		name: "a call asks on for an id that may be forgotten",
		file: "internal/lockless/once.go",
		old:  `return o.Epoch > o.First+1 }`,
		new:  `return o.Epoch > o.First+2 }`,
		by:   model("^TestWhenAnIDMayBeForgotten$"),
	},
	{
		name: "an id answers for another request",
		file: "internal/protocol/once.go",
		old:  `case others && !bare:`,
		new:  `case others && bare:`,
		by:   model("^TestRecall$"),
	},
	{
		name: "a transaction's id is an item's",
		file: "internal/protocol/once.go",
		old:  `if strings.HasPrefix(id, ofTransaction) {`,
		new:  `if strings.HasPrefix(id, ofTransaction) && id == ofTransaction {`,
		by:   suite("copies", "^TestIDsOfTransactionsAndOfItems$"),
	},
	{
		name: "a change under an id runs again",
		file: "internal/typed/once.go",
		old:  `if once.In(core, from.Raw) {`,
		new:  `if once.In(core, from.Raw) && core.Hidden(from.Raw) {`,
		by:   suite("once", "^TestAMessageChangesAnItemOnce$"),
	},
	{
		name: "a change that alters nothing leaves no id",
		file: "internal/typed/once.go",
		old:  `if once == nil || err != nil || edit.Remove {`,
		new:  `if once == nil || err != nil || edit.Remove || edit.Diff.Empty() {`,
		by:   suite("once", "^TestAChangeThatAltersNothingLeavesItsID$"),
	},
	{
		name: "the result of a run that is forgotten is given out",
		file: "once/once.go",
		old:  `return ddb.Equal(row[attrDone], row[s.locker.Core.Attr.LockHeld])`,
		new:  `return row[attrDone] != nil`,
		by:   test("once", "^TestForgotten$|^TestWhoseRequestIsRemembered$"),
	},
	{
		name: "an operation whose completion is in doubt is released",
		file: "once/once.go",
		old:  `done = true // whatever`,
		new:  `done = s == nil // whatever`,
		by:   test("once", "^TestACompletionInDoubtStays$"),
	},
}
