package lock

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

func text(s string) types.AttributeValue       { return ddb.Text(s) }
func number(at time.Time) types.AttributeValue { return ddb.Number(ddb.Seconds(at)) }
