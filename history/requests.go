package history

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"go.opentelemetry.io/otel/trace"
)

// Watch makes a client of the SDK tell the record of its writes: an option of
// dynamodb.New and dynamodb.NewFromConfig. It changes no request.
func (r *Recorder) Watch(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("DynaholdHistory",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				s, _ := trace.SpanFromContext(ctx).(*span)
				out, metadata, err := next.HandleInitialize(ctx, in)
				if s != nil {
					s.of.wrote(answerOf(metadata, err), r.writes(in.Parameters))
				}
				return out, metadata, err
			}), middleware.After)
	})
}

// answerOf says what an answer says of a write. The SDK takes any success for one of the
// service's, also what something else has sent in its place: that has no checksum.
func answerOf(metadata middleware.Metadata, err error) string {
	var failed *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	switch {
	case err == nil && hasChecksum(metadata):
		return Applied
	case errors.As(err, &failed), errors.As(err, &cancelled):
		return Failed
	}
	return None
}

func hasChecksum(metadata middleware.Metadata) bool {
	resp, _ := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response)
	return resp != nil && resp.Header.Get("X-Amz-Crc32") != ""
}

// writes are those of a request that leave an id on their items.
func (r *Recorder) writes(request any) (all []Write) {
	switch in := request.(type) {
	case *dynamodb.UpdateItemInput:
		all = r.update(all, in.TableName, in.Key, in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	case *dynamodb.TransactWriteItemsInput:
		for _, part := range in.TransactItems {
			if u := part.Update; u != nil {
				all = r.update(all, u.TableName, u.Key, u.UpdateExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues)
			}
		}
	}
	return all
}

// update notes an update whose expression gives one of the two attributes an id.
func (r *Recorder) update(all []Write, table *string, key map[string]types.AttributeValue, expression *string, names map[string]string, values map[string]types.AttributeValue) []Write {
	for placeholder, name := range names {
		if name != r.cfg.Writers && name != r.cfg.Writers+"Unread" {
			continue
		}
		value, sets := assigned(aws.ToString(expression), placeholder)
		ring, _ := values[value].(*types.AttributeValueMemberB)
		if !sets || ring == nil || len(ring.Value) < idBytes {
			continue
		}
		w := Write{Table: aws.ToString(table), Key: KeyHash(key), ID: hex.EncodeToString(ring.Value[:idBytes])}
		if r.cfg.Keys {
			w.Name = keyName(key)
		}
		all = append(all, w)
	}
	return all
}

const idBytes = 8

// assigned is the placeholder of the value that an expression gives an attribute.
func assigned(expression, placeholder string) (value string, sets bool) {
	_, rest, found := strings.Cut(expression, placeholder+" = ")
	if !found {
		return "", false
	}
	end := strings.IndexAny(rest, ", ")
	if end < 0 {
		end = len(rest)
	}
	return rest[:end], true
}

// KeyHash names an item without its key: 16 hexadecimal digits of a SHA-256. Who can
// guess a key can compare it.
func KeyHash(key map[string]types.AttributeValue) string {
	sum := sha256.Sum256([]byte(keyName(key)))
	return hex.EncodeToString(sum[:8])
}

// keyName is a text that is the same for the same key, and for no other: a number is the
// same in other digits.
func keyName(key map[string]types.AttributeValue) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(key)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + keyValue(key[name]))
	}
	return b.String()
}

func keyValue(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return strconv.Quote(v.Value)
	case *types.AttributeValueMemberB:
		return base64.StdEncoding.EncodeToString(v.Value)
	case *types.AttributeValueMemberN:
		if r, is := new(big.Rat).SetString(v.Value); is {
			return r.RatString()
		}
		return v.Value
	}
	return ""
}
