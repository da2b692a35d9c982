package ticket

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// sign adds to an entry who makes it, and when. Without Config.Owner nothing is
// added: every request on the queue bills what entries say.
func (q *Queue) sign(w *protocol.Write, id string, now time.Time) {
	if q.cfg.Owner != "" {
		w.Set(attrOwner+id, ddb.Text(strconv.FormatInt(now.Unix(), 10)+" "+q.cfg.Owner))
	}
}

// unsign takes that away with the own entry.
func (q *Queue) unsign(w *protocol.Write, id string) {
	if q.cfg.Owner != "" {
		w.Remove(attrOwner + id)
	}
}

// parseOwner reads what sign has written. No turn depends on it, so what cannot be
// read says nothing, and keeps nobody out.
func parseOwner(v types.AttributeValue) (since time.Time, owner string) {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return since, ""
	}
	at, owner, _ := strings.Cut(s.Value, " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || seconds <= 0 || seconds >= ddb.Never().Unix() {
		return since, ""
	}
	return time.Unix(seconds, 0), owner
}
