package main

// Answers, and what they prove.
var ofAnswers = []mutant{
	{
		name: "a checksum that is wrong is believed",
		file: "internal/ddb/reply.go",
		old:  `err != nil || uint32(want) != r.sum {`,
		new:  `err != nil && uint32(want) != r.sum {`,
		by:   test("internal/ddb", "^TestRepliesThatAreNotWhole$"),
	},
	{
		name: "an answer that a redirection led to is believed",
		file: "internal/ddb/answer.go",
		old:  `case a.redirected:`,
		new:  `case a.redirected && a.broken != nil:`,
		by:   test("internal/ddb", "^TestWhoseAnswer$"),
	},
	{
		name: "an answer without the checksum that all others had is believed",
		file: "internal/ddb/answer.go",
		old:  `case !a.checksum && before.checksums:`,
		new:  `case !a.checksum && before.checksums && !a.id:`,
		by:   test("internal/ddb", "^TestWhoseAnswer$"),
	},
	{
		name: "an error without a type is believed",
		file: "internal/ddb/answer.go",
		old:  `case a.seen && a.kind == "":`,
		new:  `case a.seen && a.kind == "" && a.code == "":`,
		by:   test("internal/ddb", "^TestWhoseAnswer$"),
	},
	{
		name: "another service's error is believed",
		file: "internal/ddb/answer.go",
		old:  `case !known.of(namespace):`,
		new:  `case !known.of(namespace) && !ok:`,
		by:   test("internal/ddb", "^TestWhoseAnswer$"),
	},
	{
		name: "a server's error proves that nothing was done",
		file: "internal/ddb/classify.go",
		old:  `reply.HTTPStatusCode() >= 500`,
		new:  `reply.HTTPStatusCode() >= 600`,
		by:   test("internal/ddb", "^TestSender$"),
	},
	{
		name: "a token that was used is a refusal",
		file: "internal/ddb/classify.go",
		old:  `return spent // the token`,
		new:  `return refused // the token`,
		by:   test("internal/ddb", "^TestAUsedTokenIsNoRefusal$"),
	},
	{
		name: "a refusal of the credentials says something of a copy",
		file: "internal/ddb/classify.go",
		old:  `return kind == again || c.endpoint.grants.Load()`,
		new:  `return kind == again`,
		by:   suite("copies/single", "^TestDenied$"),
	},
	{
		name: "an item that cannot be read has not changed",
		file: "internal/ddb/looked.go",
		old:  `case read.Err != nil:`,
		new:  `case read.Err != nil && !read.Unjudged:`,
		by:   suite("copies", "^TestDenied$"),
	},
	{
		name: "requests that nobody saw leave no doubt",
		file: "internal/ddb/send.go",
		old:  `res.Clean = res.Clean && !c.seen.hidden()`,
		new:  `res.Clean = res.Clean && (c.seen.ran || !c.seen.hidden())`,
		by:   test("internal/ddb", "^TestRepeatsOutOfSight$"),
	},
	{
		name: "an attempt that was given up is sent later",
		file: "internal/ddb/attempt.go",
		old:  `if a.over || a.inner == nil {`,
		new:  `if a.inner == nil {`,
		by:   test("internal/ddb", "^TestAGivenUpAttemptSendsNothingLater$"),
	},
}
