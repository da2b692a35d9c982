package telemetry

import "go.opentelemetry.io/otel/attribute"

// Names of attributes. Those that the semantic conventions have are theirs.
const (
	system      = attribute.Key("db.system.name")
	dbOperation = attribute.Key("db.operation.name")
	Collection  = attribute.Key("db.collection.name")
	tableNames  = attribute.Key("aws.dynamodb.table_names")
	errorType   = attribute.Key("error.type")
	server      = attribute.Key("server.address")
	serverPort  = attribute.Key("server.port")
	region      = attribute.Key("cloud.region")

	kindOf    = attribute.Key("dynahold.kind")
	operation = attribute.Key("dynahold.operation")
	key       = attribute.Key("dynahold.key")
	reason    = attribute.Key("dynahold.reason")
	state     = attribute.Key("dynahold.state")
	resource  = attribute.Key("dynahold.resource")
	condition = attribute.Key("dynahold.condition_failed")
	changes   = attribute.Key("dynahold.changes")
	attempt   = attribute.Key("dynahold.attempt")
	attempts  = attribute.Key("dynahold.attempts")
	delay     = attribute.Key("dynahold.delay")
)

// dynamodb is what the conventions call the service.
var dynamodb = system.String("aws.dynamodb")

// Kinds of what is changed or held.
const (
	NoLock      = "nolock"
	Optimistic  = "optimistic"
	Delegate    = "delegate"
	Pessimistic = "pessimistic" // also the locks that others take on items
	Mutex       = "mutex"
	Once        = "once"
	Ticket      = "ticket"
	Permit      = "permit"
	Job         = "job"
	Transaction = "txn"
)

// Reasons: why a hold has ended, by whom it was broken, to whom it was handed on, for whom
// was waited, what was left aside.
const (
	Lost      = "lost"     // somebody else ended it
	Expired   = "expired"  // its lease was over
	Operator  = "operator" // who asked for it
	ToCaller  = "caller"   // of the same process
	ToProcess = "process"  // another one
)
