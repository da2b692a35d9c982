package jobs

// Rows of jobs, in the table of their resources.
const (
	jobsPrefix = "JOBS#" // + resource; sort key: the job's place in line
	deadPrefix = "DEAD#" // + resource; sort key: the job's id
	idsPrefix  = "IDS#"  // + resource; sort key: an id that a caller gave; has the table's TTL once its job has ended
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

	queued  = "queued"
	running = "running"
)
