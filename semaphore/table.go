package semaphore

import (
	"fmt"
	"hash/fnv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// The table: partition key "pk", sort key "sk".
const (
	pkName, skName = "pk", "sk"

	resourcePrefix = "RESOURCE#" // + shard; sort key: the resource
	jobsPrefix     = "JOBS#"     // + resource; sort key: the job's place in line
	deadPrefix     = "DEAD#"     // + resource; sort key: the job's id
	idsPrefix      = "IDS#"      // + resource; sort key: an id that a caller gave; has the table's TTL once its job has ended
)

// Attributes of a resource.
const (
	aQueued  = "queued"
	aRunning = "running"
	aDead    = "dead"
	aLimit   = "limit"
	aFixed   = "limitSet" // BOOL: SetLimit has set it
	aToken   = "token"    // last fencing token given out on the resource
	aChanges = "changes"  // counts every change of the counters, for the audit

	aAsked = "asked" // N, Unix nanoseconds, the last three at random: when an operator's last call was made

	aSwept  = "swept"  // SS: the permits that were lately removed because their lease was over
	aPaused = "paused" // N, Unix seconds: since when it is paused; its token is then beyond maxToken

	permitPrefix = "p_" // + id: until when a permit is held, Unix seconds
	ownerPrefix  = "o_" // + id: "<Unix seconds> <Config.Owner>", who took the permit when; with Config.NamePermits only
	brokenPrefix = "x_" // + id of a permit, or token of a job: it was ended by force; the end that it had, Unix seconds
)

// Attributes of a job.
const (
	aID        = "id"
	aJob       = "job" // the user's value, JSON
	aState     = "state"
	aAttempts  = "attempts"
	aUntil     = "until"
	aOwner     = "owner"
	aNotBefore = "notBefore"
	aError     = "error"
	aMarked    = "marked" // BOOL: its id has a row of its own
	aDied      = "died"   // N, Unix seconds: when it became a dead letter

	queued  = "queued"
	running = "running"
)

// shards spread resources over partitions: every change of a job touches its
// resource. The number is fixed, for programs that disagreed about it would
// count one resource twice.
const shards = 16

func shard(name string) string { return shardKey(shardOf(name)) }

func shardOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum32() % shards)
}

func shardKey(shard int) string { return fmt.Sprintf("%s%x", resourcePrefix, shard) }

func rowKey(pk, sk string) ddb.Item { return ddb.Item{pkName: ddb.Text(pk), skName: ddb.Text(sk)} }

func resourceKey(name string) ddb.Item { return rowKey(shard(name), name) }

// integer reads a number of a row: from 0, which it is if it is absent, to most.
func integer(row ddb.Item, name string, most int64) (int64, error) {
	v, ok := row[name]
	if !ok {
		return 0, nil
	}
	n, err := ddb.Int(v)
	if err == nil && (n < 0 || n > most) {
		err = fmt.Errorf("it is not between 0 and %d", most)
	}
	if err != nil {
		return 0, fmt.Errorf("attribute %q: %w", name, err)
	}
	return n, nil
}

func text(row ddb.Item, name string) string {
	if s, ok := row[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// keyOf is the key of a row, for errors.
func keyOf(raw ddb.Item) repo.Key {
	return repo.Key{Partition: text(raw, pkName), Sort: text(raw, skName)}
}
