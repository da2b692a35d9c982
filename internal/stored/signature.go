package stored

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Sign is what an attribute says of who has made something, and when, where its id has no
// room for that: a ticket, a permit.
func Sign(now time.Time, owner string) types.AttributeValue {
	return ddb.Text(strconv.FormatInt(now.Unix(), 10) + " " + owner)
}

// ParseSign reads what Sign has written. No verdict depends on it, so what cannot be read
// says nothing.
func ParseSign(v types.AttributeValue) (since time.Time, owner string) {
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
