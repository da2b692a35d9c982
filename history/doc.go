// Package history writes down what a program asked of its items and what it was told, so
// that `dynahold verify` can compare it with what the table's stream says was done.
//
//	record := history.New(file, history.Config{})
//	defer record.Close()
//	client := dynamodb.NewFromConfig(cfg, record.Watch)
//	orders, err := repo.NewTable[Order](client, "orders", repo.TableConfig{TracerProvider: record.Tracing(nil)})
//
// # Promise
//
// A call that was told "not written" and whose write is in the stream is found, and so is
// one whose answered write is not, one that was applied twice, and a transaction of which a
// part is missing. Nothing of an item is written down: of its key a hash, and with
// Config.Keys the key. No call waits for the record: of what comes faster than it can be
// written, calls are left out and counted.
//
// # What it takes
//
// A call is known by its span, so the table's tracer is that of [Recorder.Tracing], around
// the one that the program has; for package txn that of txn.Config, too. Its writes are
// known by the ids that the library leaves on items, which [Recorder.Watch] sees in the
// requests of the SDK. Requests that client direct sends past the SDK are not seen.
//
// # Format
//
// One JSON document a line:
//
//	{"call":"optimistic.Update","table":"orders","began":"…","ended":"…","verdict":"refused",
//	 "error":"conflict","writes":[{"table":"orders","key":"5e884898da280471","id":"1f8b0800a4c2d6e3","answer":"refused"}]}
//
// verdict is done, refused (not written) or unknown; error is error.type of telemetry.
// answer is applied, refused, or none. {"dropped":3} counts calls that were left out.
package history
