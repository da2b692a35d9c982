// Package localdb gives demos and tests a real DynamoDB-compatible engine
// without an account, a container or a set-up step.
//
// In a test, one line is enough:
//
//	client := localdb.Client(t)
//
// In a program, [Start] returns an [Engine] that the caller closes.
//
// # Promise
//
// After [Start] returned without an error, [Engine.Client] talks to an engine
// that answers. An engine started here belongs to its caller alone: it begins
// empty (or with the file named in [Config]), listens on the loopback address
// only, on a port of its own, and ends with [Engine.Close], or with the
// process that started it, even when that process is killed with SIGKILL.
//
// # Where the engine comes from
//
// The first of these that exists is used:
//
//  1. [Config.Endpoint].
//  2. The environment: AWS_ENDPOINT_URL_DYNAMODB, then AWS_ENDPOINT_URL. So
//     the same tests run unchanged against Amazon DynamoDB or any compatible
//     server. As in every AWS tool, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true
//     switches this off.
//  3. A program named dynoxide on the PATH, if it is of the pinned version: it
//     is asked for it. Of another one a warning is logged.
//  4. A dynoxide that an earlier run left in the cache folder.
//  5. A fresh dynoxide, fetched through npm at a pinned version into the cache
//     folder.
//
// With an endpoint given (1, 2) nothing is started; region and credentials come as for
// every AWS tool, placeholders on the loopback address. An endpoint_url in a shared
// configuration file is not looked at.
//
// Where nothing is found, Start fails with [ErrNoEngine] and names the ways out.
//
// It ends with its owner, also one that is killed (on Unix: a watcher waits for the end of
// a pipe that only the owner holds; elsewhere it ends with Close).
//
// # Security
//
// What was fetched is run only if its SHA-512 is the pinned one, and what runs is what was
// compared: on Linux a sealed file in memory, elsewhere a copy in a private folder. Only
// linux/amd64 has pinned sums; elsewhere the first fetch is trusted, and its sum noted. A
// dynoxide on the PATH runs on its word alone. Cache folders that others own or may write
// to are refused; npm runs where nobody else can exchange its folder. npm and the engine do
// not inherit the environment. More: SECURITY.md.
//
// Everyone on the machine, and a web page that finds the port, under any name, can reach the
// engine: no secrets belong into it.
//
// # Not guaranteed
//
// It is no production storage, and no local engine throttles, serves stale reads, reports
// transaction conflicts, or deletes expired items. The embedded one takes keys of indexes above
// 2 KB, and a REMOVE within what is not there; behind the end of a list it sets nulls. With an
// endpoint given by the environment tables outlive Close: choose unique names.
package localdb
