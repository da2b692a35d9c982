package dynahold_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/dynahold/dynahold"

// A row says what the production code of a folder may import of this module.
type row struct {
	folder string   // "examples/..." stands for every folder below
	may    []string // "public" stands for every package that users may import
	why    string
	// tests are what the folder's tests may import beside: those that show how
	// it behaves towards another strategy on the same item.
	tests []string
	// module is where the folder's own go.mod stands: what its code imports from
	// outside is its own affair.
	module string
	// testOnly packages serve tests: no production code may import them, and
	// they may use what only tests may use.
	testOnly bool
}

// layout is the import table. A new folder gets a row, with its reason; a new
// entry in a row is a decision about the design.
var layout = []row{
	{folder: ".", why: "documentation only; its tests compare the strategies and the documents"},
	// Transport, protocol, vocabulary: each knows those above it in this table only.
	{folder: "internal/telemetry", why: "names of spans, metrics and log events, and who is told; knows nothing of this module"},
	{folder: "internal/telemetry/gauges", may: []string{"internal/telemetry"}, why: "what a process knows of the mail that it has sent and of what it leads; apart, so that who delegates nothing compiles none of it"},
	{folder: "internal/goroutine", why: "tells goroutines apart, where a call inside a change has another context, or what it calls may end its own"},
	{folder: "internal/jsontype", why: "which types JSON would leave something out of; knows nothing of this module"},
	{folder: "internal/redact", why: "keeps values of items out of errors; knows nothing of this module"},
	{folder: "direct", tests: []string{"internal/ddb"}, module: "direct", why: "requests of a client without the SDK's middleware, for who asks for it; knows what the SDK makes, and nothing of the library"},
	{folder: "internal/ddb", may: []string{"internal/redact", "internal/telemetry", "internal/goroutine"}, tests: []string{"internal/protocol", "internal/stored"}, why: "transport: the only home of sending and repeating conditional writes; knows no lock and no types of users"},
	{folder: "internal/recent", why: "a bounded memory of what was used last: memory only"},
	{folder: "internal/stored", may: []string{"internal/ddb"}, why: "what the library keeps on items, and how it is read: it writes nothing and judges nothing"},
	{folder: "internal/protocol", may: []string{"internal/ddb", "internal/stored", "internal/recent"}, tests: []string{"internal/expressions", "internal/lockless"}, why: "the item lock and its queue, versions and operation ids: what is written, under which condition, and how it is judged; their models"},
	{folder: "internal/beside", may: []string{"internal/goroutine", "internal/ddb", "internal/protocol", "internal/stored"}, tests: []string{"internal/lockless"}, why: "what an item remembers of ids of operations, and the rows beside it for which it has no room"},
	{folder: "internal/lockless", may: []string{"internal/ddb", "internal/stored", "internal/protocol", "internal/beside"}, why: "the same for writers without the lock and for transactions, so that the lock compiles none of it; their models"},
	{folder: "internal/link", may: []string{"internal/ddb", "internal/stored"}, why: "what engines need of a table and users must not see"},
	{folder: "repo", may: []string{"internal/redact", "internal/goroutine", "internal/ddb", "internal/stored", "internal/link", "internal/telemetry"}, why: "the vocabulary of users and engines; knows no strategy"},
	{folder: "unique", may: []string{"repo", "internal/ddb", "internal/stored", "internal/link"}, tests: []string{"optimistic"}, why: "the rows that keep values unique, listed and mended: what no program needs that only writes items"},
	{folder: "internal/settings", may: []string{"repo"}, why: "what all configurations have in common: defaults, bounds and the words of their errors"},
	// Keeping, and what is memory or arithmetic only.
	{folder: "internal/lease", may: []string{"repo", "internal/ddb", "internal/nesting", "internal/telemetry"}, why: "deadline, renewal, end and context of whatever is held; sends what its kinds write, and knows no item"},
	{folder: "internal/closing", may: []string{"repo", "internal/ddb", "internal/goroutine"}, why: "how a client is closed that holds something: calls end, then what it holds; knows no leases"},
	{folder: "internal/hold", may: []string{"repo", "internal/ddb", "internal/stored", "internal/lease"}, why: "what a transaction asks of anything held, so that nothing held knows the transactions"},
	{folder: "internal/rows", may: []string{"repo", "internal/ddb", "internal/stored", "internal/protocol", "internal/hold"}, why: "what a transaction does to rows that are no items, so that jobs know no transactions"},
	{folder: "internal/pace", why: "when to look again at a line in which one waits: arithmetic only"},
	// Engines.
	{folder: "internal/lock", tests: []string{"internal/link", "internal/lockless"}, may: []string{"repo", "internal/goroutine", "internal/settings", "internal/ddb", "internal/protocol", "internal/stored", "internal/lease", "internal/hold", "internal/pace", "internal/recent", "internal/telemetry"}, why: "the item lock without types of users, and waiting for others"},
	{folder: "internal/unlocked", tests: []string{"internal/link"}, may: []string{"repo", "internal/settings", "internal/ddb", "internal/protocol", "internal/lockless", "internal/stored", "internal/lock", "internal/telemetry"}, why: "one call that writes an item without its lock: waiting for those who hold it, and what the call's error must say"},
	{folder: "internal/nesting", may: []string{"repo", "internal/ddb", "internal/stored", "internal/telemetry"}, why: "which calls are refused inside changes and closures, by their contexts; sends nothing"},
	{folder: "internal/typed", may: []string{"repo", "internal/ddb", "internal/protocol", "internal/beside", "internal/link", "internal/lock", "internal/nesting"}, why: "items of users' types without knowing these, and what a change makes of them: sends nothing but what ids of operations ask of rows beside the item"},
	{folder: "internal/expressions", may: []string{"repo", "internal/ddb", "internal/protocol", "internal/lockless"}, why: "users' updates that are expressions, under the marks of the protocol: sends nothing"},
	{folder: "internal/cas", may: []string{"repo", "internal/ddb", "internal/protocol", "internal/lockless", "internal/lock", "internal/unlocked", "internal/typed", "internal/expressions"}, why: "compare and set, by those who hold no lock"},
	{folder: "internal/local", may: []string{"repo", "internal/ddb", "internal/stored", "internal/lease", "internal/lock", "internal/telemetry"}, why: "callers of one process that want the same item: one of them goes to the table, and hands its lock on"},
	{folder: "internal/combine", may: []string{"repo", "internal/ddb", "internal/typed", "internal/lock", "internal/telemetry"}, why: "one write for the changes of many callers of one process"},
	{folder: "internal/transaction", may: []string{"repo", "internal/ddb", "internal/protocol", "internal/lockless", "internal/stored", "internal/lease", "internal/hold", "internal/rows", "internal/lock", "internal/unlocked", "internal/typed", "internal/expressions", "internal/local", "internal/telemetry", "internal/nesting", "internal/goroutine"}, why: "several items at once: what a closure has read and changed, and the one request that commits it"},
	// Faces. Among them only lockedread and txn are known to others.
	{folder: "lockedread", may: []string{"repo", "internal/settings", "internal/goroutine", "internal/ddb", "internal/protocol", "internal/lease", "internal/lock", "internal/typed", "internal/local", "internal/combine", "internal/telemetry", "internal/nesting"}, tests: []string{"optimistic"}, why: "the item lock by handle"},
	{folder: "txn", may: []string{"repo", "internal/settings", "internal/hold", "internal/transaction", "internal/link", "internal/telemetry", "internal/nesting"}, tests: []string{"nolock", "optimistic", "pessimistic", "lockedread", "mutex", "once", "ticket", "semaphore", "jobs", "repotest"}, why: "transactions for users; the strategies know it, for their views inside one"},
	{folder: "nolock", may: []string{"repo", "internal/redact", "txn", "internal/transaction", "internal/settings", "internal/ddb", "internal/protocol", "internal/lockless", "internal/stored", "internal/lock", "internal/unlocked", "internal/cas", "internal/typed", "internal/expressions", "internal/telemetry", "internal/nesting"}, tests: []string{"lockedread", "pessimistic"}, why: "a strategy: knows no other strategy"},
	{folder: "optimistic", may: []string{"repo", "txn", "internal/transaction", "internal/settings", "lockedread", "internal/goroutine", "internal/ddb", "internal/protocol", "internal/lockless", "internal/recent", "internal/lock", "internal/unlocked", "internal/cas", "internal/typed", "internal/local", "internal/combine", "internal/telemetry", "internal/nesting"}, tests: []string{"pessimistic"}, why: "a strategy: knows no other strategy; the lock only where it is fair, for items that many want"},
	{folder: "pessimistic", may: []string{"repo", "txn", "internal/transaction", "internal/settings", "lockedread", "internal/lock", "internal/cas", "internal/typed", "internal/local", "internal/telemetry", "internal/nesting"}, tests: []string{"internal/goroutine"}, why: "the strategy built on the item lock"},
	{folder: "internal/delegation", may: []string{"internal/ddb", "internal/stored"}, why: "what decides over delegated commands, their evidence on items, and the model: sends nothing"},
	{folder: "delegate", may: []string{"repo", "internal/jsontype", "internal/delegation", "internal/redact", "internal/settings", "internal/ddb", "internal/protocol", "internal/stored", "internal/link", "internal/recent", "internal/lock", "internal/cas", "internal/typed", "internal/telemetry", "internal/telemetry/gauges", "internal/nesting", "internal/goroutine"}, tests: []string{"optimistic", "pessimistic", "txn", "once"}, why: "changes as data: one process carries out the commands of all; knows no strategy, and writes items as those without a lock do"},
	{folder: "mutex", may: []string{"repo", "internal/goroutine", "internal/settings", "internal/ddb", "internal/protocol", "internal/link", "internal/lease", "internal/closing", "internal/lock", "internal/local", "internal/telemetry", "internal/nesting"}, why: "named locks: rows that are nothing but the item lock"},
	{folder: "once", may: []string{"repo", "internal/redact", "internal/goroutine", "internal/settings", "internal/ddb", "internal/protocol", "internal/link", "internal/lock", "internal/telemetry", "internal/nesting"}, why: "operations with effects elsewhere: rows that are the item lock, and what the operation gave"},
	{folder: "ticket", may: []string{"repo", "internal/settings", "internal/ddb", "internal/stored", "internal/link", "internal/lease", "internal/closing", "internal/hold", "internal/pace", "internal/telemetry", "internal/nesting"}, tests: []string{"internal/protocol"}, why: "the queue lock: an item of its own kind"},
	{folder: "internal/resources", may: []string{"repo", "internal/ddb", "internal/stored", "internal/link", "internal/lease", "internal/recent", "internal/telemetry"}, why: "the row on which permits and jobs of a resource are counted: one owner, one limit"},
	{folder: "semaphore", may: []string{"repo", "internal/resources", "internal/settings", "internal/ddb", "internal/stored", "internal/lease", "internal/closing", "internal/hold", "internal/telemetry", "internal/nesting"}, tests: []string{"jobs"}, why: "permits: attributes of a resource's row"},
	{folder: "jobs", may: []string{"repo", "internal/jsontype", "internal/resources", "internal/redact", "internal/settings", "internal/goroutine", "internal/ddb", "internal/protocol", "internal/stored", "internal/lease", "internal/closing", "internal/hold", "internal/rows", "internal/recent", "internal/telemetry", "internal/nesting"}, tests: []string{"semaphore", "txn"}, why: "queued work: rows of their own, counted with those of a resource"},
	{folder: "history", tests: []string{"localdb", "repo", "txn", "nolock", "optimistic", "pessimistic"}, why: "what a program asked and was told, written down from its spans and requests: knows nothing of this module"},
	{folder: "internal/bridge", why: "requests from virtual time to a real service; knows no DynamoDB"},
	{folder: "internal/load", may: []string{"localdb", "public", "internal/bridge"}, why: "the harness of the bench and of dynahold compare; runs every strategy"},
	{folder: "localdb", why: "an engine for tests: must be usable by tests of every package above"},
	{folder: "examples/internal/crew", may: []string{"localdb"}, why: "processes that start, pause and kill each other; knows nothing of what an example shows"},
	{folder: "examples/internal/report", why: "how examples say what their audit has found; knows nothing of it"},
	{folder: "examples/lambda", may: []string{"public", "examples/internal/crew"}, module: "examples/lambda", why: "what a user deploys to AWS Lambda, which needs a module of Amazon's; and its stage"},
	{folder: "examples/...", may: []string{"public", "examples/internal/crew", "examples/internal/report"}, why: "what a user can write, and of each example only its own lesson"},
	{folder: "cmd/dynahold", may: []string{"public", "internal/load", "cmd/dynahold/internal/compare", "cmd/dynahold/internal/complete", "cmd/dynahold/internal/grid", "cmd/dynahold/internal/live", "cmd/dynahold/internal/record", "cmd/dynahold/internal/shown", "cmd/dynahold/internal/timeline", "cmd/dynahold/internal/verify"}, tests: []string{"internal/fault", "internal/fixture"}, module: "cmd/dynahold", why: "everything that the tool does, the library can do; compare measures as the bench does"},
	{folder: "cmd/dynahold/internal/complete", module: "cmd/dynahold", why: "what a word of a command line can become; knows the grammar only"},
	{folder: "cmd/dynahold/internal/live", module: "cmd/dynahold", why: "a page on a terminal; does not know what is on it"},
	{folder: "cmd/dynahold/internal/record", module: "cmd/dynahold", why: "what a watch writes down; reads no table"},
	{folder: "cmd/dynahold/internal/shown", module: "cmd/dynahold", why: "how texts that others have written are shown: no commands to terminals and browsers, in tables, documents, errors and pages alike"},
	{folder: "cmd/dynahold/internal/timeline", may: []string{"cmd/dynahold/internal/record", "cmd/dynahold/internal/shown"}, module: "cmd/dynahold", why: "who held what when, from records"},
	{folder: "cmd/dynahold/internal/verify", may: []string{"repo", "history", "internal/ddb", "internal/delegation", "internal/link", "internal/stored"}, module: "cmd/dynahold", why: "whether the protocol allows a history; sends nothing"},
	{folder: "cmd/dynahold/internal/grid", module: "cmd/dynahold", why: "how all tables of the tool look"},
	{folder: "cmd/dynahold/internal/compare", may: []string{"internal/load", "cmd/dynahold/internal/grid", "cmd/dynahold/internal/shown"}, module: "cmd/dynahold", why: "the judgement of what was measured; knows no terminal"},
	{folder: "bench", may: []string{"public", "internal/load"}, module: "bench", why: "peers and measurements"},
	{folder: "docs/adoption", tests: []string{"localdb", "repo", "txn", "nolock", "optimistic", "pessimistic", "mutex"}, module: "docs/adoption", why: "tables and programs from before, with the libraries that wrote them"},
	{folder: "docs/tablecheck", may: []string{"public"}, module: "docs/tablecheck", why: "the templates of docs/tables.md against what the packages make"},
	{folder: "docs/telemetry", tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic", "lockedread", "mutex", "once", "ticket", "semaphore", "jobs", "delegate", "internal/telemetry", "internal/rig", "internal/fault"}, module: "docs/telemetry", why: "a dashboard and alert rules, against a real Prometheus and what is really recorded"},
	{folder: "repotest", may: []string{"repo", "localdb", "internal/fault"}, tests: []string{"nolock", "optimistic", "pessimistic", "lockedread", "mutex", "once", "ticket", "semaphore", "jobs"}, testOnly: true, why: "what users' tests need: a clock, faults, and the promises of a repository as a suite; no program may use it"},
	{folder: "internal/search", testOnly: true, why: "walks through every state of a model, for tests; knows no model"},
	{folder: "internal/fault", testOnly: true, why: "faulty transport for tests"},
	{folder: "internal/rig", may: []string{"internal/fault", "internal/bridge", "localdb"}, testOnly: true, why: "an engine, a table and a client that can be broken, for tests"},
	{folder: "internal/fixture", may: []string{"public", "internal/rig", "internal/local"}, testOnly: true, why: "what the suites and generics_test.go run over: an item, the strategies, the kinds of lock; waits for callers where internal/local lets them wait"},
	{folder: "internal/suite/documents", tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic", "lockedread", "delegate", "mutex", "once", "ticket", "semaphore", "jobs", "direct", "internal/link"}, module: "internal/suite", testOnly: true, why: "the programs that documents show"},
	{folder: "internal/suite/conformance", may: []string{"public"}, module: "internal/suite", testOnly: true, why: "the promises of all strategies beside generics_test.go"},
	{folder: "internal/suite/coalescing", may: []string{"public"}, tests: []string{"internal/local"}, module: "internal/suite", testOnly: true, why: "many callers of one process on one item"},
	{folder: "internal/suite/fair", may: []string{"public"}, module: "internal/suite", testOnly: true, why: "the promises of everything that waits in turn"},
	{folder: "internal/suite/exclusion", may: []string{"public"}, module: "internal/suite", testOnly: true, why: "the promises of all kinds of lock"},
	{folder: "internal/suite/faults", may: []string{"public"}, module: "internal/suite", testOnly: true, why: "true verdicts over a bad network and in killed processes"},
	{folder: "internal/suite/copies", tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic", "lockedread", "delegate", "mutex", "once", "ticket", "semaphore", "jobs"}, module: "internal/suite", testOnly: true, why: "requests that are delivered twice, call by call and moment by moment"},
	{folder: "internal/suite/copies/single", may: []string{"public"}, module: "internal/suite", testOnly: true, why: "requests of one item that are delivered twice, by the strategies"},
	{folder: "internal/suite/delegated", tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic", "lockedread", "delegate"}, module: "internal/suite", testOnly: true, why: "what befalls each request of a command, and what others do to its item"},
	{folder: "internal/suite/answers", tests: []string{"direct", "repo", "txn", "nolock", "optimistic", "pessimistic", "lockedread", "delegate", "mutex", "once", "ticket", "semaphore", "jobs"}, module: "internal/suite", testOnly: true, why: "answers that are not DynamoDB's, at every call that writes"},
	{folder: "internal/suite/costs", may: []string{"public"}, tests: []string{"direct", "internal/load"}, module: "internal/suite", testOnly: true, why: "requests, units and permissions against the documents; benchmarks"},
	{folder: "internal/suite/wire", module: "internal/suite", testOnly: true, tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic", "lockedread", "delegate", "mutex", "once", "ticket", "semaphore", "jobs", "internal/bridge"}, why: "what every public operation sends, in a golden file"},
	{folder: "internal/suite/apply", tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic"}, module: "internal/suite", testOnly: true, why: "changes that are written as expressions, of all strategies that have them"},
	{folder: "internal/suite/once", tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic"}, module: "internal/suite", testOnly: true, why: "changes that are made once for one id, by both strategies that have them"},
	{folder: "internal/suite/unique", tests: []string{"repo", "unique", "txn", "nolock", "optimistic", "pessimistic", "lockedread"}, module: "internal/suite", testOnly: true, why: "values that no two items have, by all strategies that keep them so"},
	{folder: "internal/suite/nested", tests: []string{"repo", "txn", "nolock", "optimistic", "pessimistic", "lockedread", "mutex", "once", "ticket", "semaphore", "jobs", "internal/fault"}, module: "internal/suite", testOnly: true, why: "calls inside changes and closures, and goroutines of one closure, of all strategies"},
	{folder: "internal/suite/oldprogram", tests: []string{"repo", "optimistic", "semaphore", "jobs"}, module: "internal/suite", testOnly: true, why: "a program that is built from an earlier state, beside those of today"},
	{folder: "internal/suite/mutants", module: "internal/suite", testOnly: true, why: "breaks of the library that its tests must find; knows its texts, and imports nothing of it"},
	{folder: "internal/suite/closure", module: "internal/suite", testOnly: true, why: "how much code one import compiles; knows its texts, and imports nothing of it"},
	{folder: "internal/suite/soak", module: "internal/suite", testOnly: true, why: "runs the proofs for as long as it is given, each time with another seed; knows their commands, and imports nothing of the library"},
	{folder: "internal/suite/surface", module: "internal/suite", testOnly: true, why: "nothing internal in what users can see"},
	{folder: "internal/suite/load", tests: []string{"internal/load"}, module: "internal/suite", testOnly: true, why: "the harness of the bench and of dynahold compare, against strategies that lose and double"},
	{folder: "internal/suite/foreign", tests: []string{"repo", "nolock", "optimistic", "pessimistic", "lockedread", "mutex", "internal/ddb", "internal/protocol", "internal/stored"}, module: "internal/suite", testOnly: true, why: "attributes with the library's names that are not the library's, under every operation"},
	{folder: "internal/suite/history", module: "internal/suite", testOnly: true, why: "histories for the linearizability checker"},
}

// What may come from outside the standard library, by import path or prefix of
// it. Of OpenTelemetry the interfaces only: the SDK is the program's choice.
var (
	productionModules = []string{
		"github.com/aws/aws-sdk-go-v2",
		"github.com/aws/smithy-go",
		"github.com/robfig/cron/v3",
		"go.opentelemetry.io/otel/attribute",
		"go.opentelemetry.io/otel/codes",
		"go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/propagation",
		"go.opentelemetry.io/otel/trace",
	}
	// globalProviders is where programs install theirs. Only telemetry asks for them, and
	// what stands below that path is not allowed.
	globalProviders = "go.opentelemetry.io/otel"
	testModules     = []string{
		"github.com/google/go-cmp",
		"go.uber.org/goleak",
	}
)

func TestImportsFollowTheTable(t *testing.T) {
	for _, violation := range violations(sources(t, goFiles(t))) {
		t.Error(violation)
	}
}

// TestForbiddenImportsAreFound plants one import at a time in a copy of the
// files, and sees that it is refused, or allowed where it should be.
func TestForbiddenImportsAreFound(t *testing.T) {
	files := goFiles(t)
	before := violations(sources(t, files))
	const good = ""
	for _, planted := range []struct{ file, imported, want string }{
		{"repo/planted.go", module + "/internal/pace", "repo must not import internal/pace"},
		{"repo/planted_windows.go", module + "/internal/pace", "repo must not import internal/pace"},
		{"nolock/planted.go", module + "/optimistic", "nolock must not import optimistic"},
		{"nolock/planted_test.go", module + "/optimistic", "tests of nolock must not import optimistic"},
		{"nolock/planted_test.go", module + "/pessimistic", good},
		{"localdb/planted.go", module + "/repo", "localdb must not import repo"},
		{"mutex/planted.go", module + "/internal/fault", "mutex must not import internal/fault"},
		{"mutex/planted.go", module + "/txn", "mutex must not import txn"},
		{"internal/lock/planted.go", module + "/internal/lockless", "internal/lock must not import internal/lockless"},
		{"internal/local/planted.go", module + "/internal/cas", "internal/local must not import internal/cas"},
		{"lockedread/planted.go", module + "/internal/cas", "lockedread must not import internal/cas"},
		{"once/planted.go", module + "/internal/transaction", "once must not import internal/transaction"},
		{"ticket/planted.go", module + "/internal/transaction", "ticket must not import internal/transaction"},
		{"semaphore/planted.go", module + "/txn", "semaphore must not import txn"},
		{"jobs/planted.go", module + "/txn", "jobs must not import txn"},
		{"mutex/planted_test.go", module + "/internal/fault", good},
		{"planted.go", module + "/repo", ". must not import repo"},
		{"planted_test.go", module + "/internal/lock", good},
		{"examples/quickstart/planted.go", module + "/internal/ddb", "examples/quickstart must not import internal/ddb"},
		{"bench/planted.go", module + "/internal/lock", "bench must not import internal/lock"},
		{"bench/planted.go", "example.org/peer", good}, // a module of its own
		{"examples/lambda/planted.go", module + "/internal/ddb", "examples/lambda must not import internal/ddb"},
		{"examples/lambda/planted.go", "example.org/peer", good},
		{"examples/orders/planted.go", "example.org/peer", "examples/orders must not import example.org/peer"},
		{"cmd/dynahold/planted.go", module + "/internal/ddb", "cmd/dynahold must not import internal/ddb"},
		{"docs/tablecheck/planted_test.go", module + "/internal/ddb", "tests of docs/tablecheck must not import internal/ddb"},
		{"repo/planted.go", "example.org/peer", "repo must not import example.org/peer"},
		{"repo/planted_test.go", "example.org/peer", "tests of repo must not import example.org/peer"},
		{"repo/planted.go", "github.com/google/go-cmp/cmp", "repo must not import github.com/google/go-cmp/cmp"},
		{"repo/planted_test.go", "github.com/google/go-cmp/cmp", good},
		{"repo/planted.go", "go.opentelemetry.io/otel/sdk/trace", "repo must not import go.opentelemetry.io/otel/sdk/trace"},
		{"repo/planted.go", "go.opentelemetry.io/otel", "repo must not import go.opentelemetry.io/otel"},
		{"internal/telemetry/planted.go", "go.opentelemetry.io/otel", good},
		{"internal/telemetry/planted.go", "go.opentelemetry.io/otel/sdk/trace", "internal/telemetry must not import go.opentelemetry.io/otel/sdk/trace"},
		{"repo/planted.go", "net/http", good},
		{"repo/planted.go", module + "/internal/protocol", "repo must not import internal/protocol"},
		{"ticket/planted.go", module + "/internal/protocol", "ticket must not import internal/protocol"},
		{"util/planted.go", "strings", "util has no row in the import table"},
	} {
		if files[planted.file] != nil {
			t.Fatalf("%s exists: choose another name", planted.file)
		}
		files[planted.file] = &fstest.MapFile{Data: fmt.Appendf(nil, "package planted\n\nimport _ %q\n", planted.imported)}
		found := slices.DeleteFunc(violations(sources(t, files)), func(violation string) bool {
			return slices.Contains(before, violation)
		})
		delete(files, planted.file)
		if planted.want == good && len(found) != 0 || planted.want != good && (len(found) != 1 || !strings.HasPrefix(found[0], planted.want)) {
			t.Errorf("%s importing %s: found %q, want %q", planted.file, planted.imported, found, planted.want)
		}
	}
	for path := range files {
		if strings.HasPrefix(path, "internal/recent/") {
			delete(files, path)
		}
	}
	if found := violations(sources(t, files)); !slices.Contains(found, "internal/recent has a row in the import table, and no Go files") {
		t.Errorf("a row without a folder: found %q", found)
	}
}

// The rules themselves, so that a slip in them cannot let everything pass.
func TestImportRules(t *testing.T) {
	cases := []struct {
		own, folder       string
		production, tests bool
	}{
		{"nolock", "repo", true, true},
		{"nolock", "optimistic", false, false},
		{"nolock", "pessimistic", false, true},
		{"nolock", "mutex", false, false},
		{"nolock", "internal/fault", false, true},
		{"pessimistic", "lockedread", true, true},
		{"repo", "nolock", false, false},
		{"localdb", "repo", false, false},
		{"examples/inventory", "optimistic", true, true},
		{"examples/inventory", "localdb", true, true},
		{"examples/inventory", "internal/ddb", false, false},
		{"examples/inventory", "examples/hashchain", false, false},
		{"examples/leader", "examples/internal/crew", true, true},
		{"examples/internal/crew", "mutex", false, false},
		{"cmd/dynahold", "examples/internal/crew", false, false},
		{"cmd/dynahold", "internal/suite/history", false, true},
		{"cmd/dynahold", "internal/ddb", false, false},
		{"bench", "internal/load", true, true},
		{"bench", "internal/lock", false, false},
		{"internal/fault", "internal/ddb", false, false},
		{".", "nolock", false, true},
	}
	for _, c := range cases {
		r := rowOf(c.own)
		if r == nil {
			t.Errorf("%s has no row", c.own)
			continue
		}
		if got := r.allows(c.folder); got != c.production {
			t.Errorf("%s importing %s: %v", c.own, c.folder, got)
		}
		if got := r.testsAllow(c.own, c.folder); got != c.tests {
			t.Errorf("tests of %s importing %s: %v", c.own, c.folder, got)
		}
	}
	for _, folder := range []string{"util", "repository", "examples", "internal"} {
		if r := rowOf(folder); r != nil {
			t.Errorf("%s has the row of %s", folder, r.folder)
		}
	}
}
