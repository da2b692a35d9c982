package jobs

// Rows of jobs, in the table of their resources.
const (
	jobsPrefix   = "JOBS#"   // + resource; sort key: the job's place in line
	laterPrefix  = "LATER#"  // + shard of the resource; sort key: the place that the job will have in line
	uniquePrefix = "UNIQUE#" // + resource; sort key: what only one job may have while it waits or runs
	deadPrefix   = "DEAD#"   // + resource; sort key: the job's id
	idsPrefix    = "IDS#"    // + resource; sort key: an id that a caller gave; has the table's TTL once its job has ended
)

// Attributes of a job. Package resources keeps these names free.
const (
	aID        = "id"
	aJob       = "job" // the user's value, JSON
	aState     = "state"
	aAttempts  = "attempts"
	aToken     = "token" // of the start, while it runs
	aUntil     = "until"
	aOwner     = "owner"
	aNotBefore = "notBefore"
	aError     = "error"
	aMarked    = "marked" // BOOL: its id has a row of its own
	aDied      = "died"   // N, Unix seconds: when it became a dead letter

	aLevel   = "level"   // N: its priority, if that is not the default
	aMost    = "most"    // N: how often it is started at most, if that is its own
	aTimeout = "timeout" // N, milliseconds: how long a handler may work on it, if that is its own
	aUnique  = "unique"  // the sort key of a row that stands for it
	aTrace   = "trace"   // where it comes from, if that is traced: a traceparent

	aResource = "resource" // of a job that waits for its time
	aAt       = "at"       // of an id's row: the place of its job, if that was made for a time

	queued  = "queued"
	running = "running"
)
