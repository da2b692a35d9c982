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
// With an endpoint given (1, 2) nothing is started: region and credentials
// come from the environment and the profile, as for every AWS tool. Where the
// endpoint is on the loopback address and none can be found, placeholders take
// their place, because local servers ask for some but check none. An
// endpoint_url in a shared configuration file is not looked at: tests must not
// reach a production table because of a file that nobody thought of.
//
// Where nothing is found, Start fails with [ErrNoEngine] and names the ways out.
//
// # How it ends with its owner
//
// On Unix the engine is started through /bin/sh. The shell keeps the reading
// end of a pipe whose writing end only the owner holds, leaves a watcher
// behind that waits for the end of that pipe, and then becomes the engine.
// When the owner dies, however it dies, the kernel closes the pipe and the
// watcher kills the engine's process group. The group is the engine's own, so
// Ctrl-C reaches the owner first and the engine only through it. An npm that
// fetches is held in the same way.
//
// On other systems the engine ends with Close only; an owner that is killed
// leaves it behind.
//
// # Security
//
// Nothing that was fetched is run unchecked. The tarball's SHA-512 is compared
// with a pinned sum before anything is unpacked, a single file is taken out of
// it, and that file's own SHA-512 is compared before every start. What runs is
// what was compared: on Linux a sealed file in memory, elsewhere a copy in a
// private folder. Exchanging the cached file meanwhile changes nothing.
//
// Only linux/amd64 has pinned sums. On the other platforms the first fetch is
// trusted: npm compares the tarball with the sum that the registry itself names,
// and the engine's sum is noted beside it and compared from then on. Whoever
// controls the registry, or the way to it, at that first fetch chooses the
// program.
//
// The cache folder and the engine's folder in it must be this user's or root's,
// writable by nobody else, and no links: others are refused. The folders above
// may be what they are. On Windows owners are not checked; the default folder is
// in the user's profile.
//
// No address of a registry is known here: npm is asked, with the user's own
// settings. It runs in a folder with a package of its own, so that settings of
// projects in the folders above say nothing to it.
//
// Neither npm nor the engine inherits the environment. The engine gets the search
// path, the home folder, the language and the folder for temporary files; npm
// also proxies, certificates, its own settings (npm_config_*), and the variables
// that the user's .npmrc names.
//
// A dynoxide on the PATH is run on its word alone: it is asked for its version,
// and no sum is compared. Take it off the PATH where that is not wanted.
//
// The files of [Config.Path] have the mode 0600, also those of earlier runs.
//
// The engine checks neither signatures nor permissions, and has no switch for it.
// Everyone on the machine can reach it, so no secrets belong into it. It also
// allows every web page to read its answers (Access-Control-Allow-Origin: *):
// a page that finds the port, which is another one at each start, can read and
// change what is in the engine.
//
// # Not guaranteed
//
// It is not production storage. Engines differ from Amazon DynamoDB: none of
// the local ones throttles, serves stale reads, reports transaction conflicts,
// or deletes expired items. With an endpoint given by the environment, tables
// outlive Close and may be shared with others: choose unique names.
package localdb
