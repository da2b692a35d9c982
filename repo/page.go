package repo

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/dynahold/dynahold/internal/ddb"
)

const defaultPage = 100

// Page reads one page of a query, for clients that ask for the next one later: at
// most as many items as Limit says (default 100), and a token of the next page, ""
// after the last. token is "" for the first page. A token is encrypted with
// TableConfig.PageSecret, and says neither a key nor a number: whoever has it can do
// nothing with it but ask for the page, of the same query. Limit, PageSize, Eventually
// and Unreadable may differ; every other option must be the same, with the same values:
// a bound or a filter that is a time must be kept for all pages. ErrPage if not, if the
// token was altered, or made by a version of the library that bound it to less. It stays
// valid; what is written meanwhile is in the
// pages that come after its place. One request for each 1 MB read, as of Query.
func (t *Table[T]) Page(ctx context.Context, partition any, token string, options ...QueryOption) (items []T, next string, err error) {
	found, next, err := t.m.page(ctx, partition, token, options)
	for _, item := range found {
		items = append(items, *item.(*T))
	}
	return items, next, err
}

func (t *mapping) page(ctx context.Context, partition any, token string, options []QueryOption) (items []any, next string, err error) {
	q, err := t.newQuery(partition, options)
	if err != nil {
		return nil, "", err
	}
	seal, err := t.sealOf(q)
	if err != nil {
		return nil, "", err
	}
	if token != "" {
		if q.input.ExclusiveStartKey, err = seal.open(token); err != nil {
			return nil, "", err
		}
	}
	n := q.plan.limit
	if n == 0 {
		n = defaultPage
	}
	if q.input.Limit == nil {
		q.input.Limit = aws.Int32(int32(min(n, maxPageSize-1) + 1)) // one more tells whether there is a next page
	}
	var last ddb.Item
	for raw, err := range t.queryPages(ctx, q) {
		if err != nil {
			return nil, "", err
		}
		item, shown, err := t.shown(raw, q.plan.unexpired)
		switch {
		case !shown:
			continue
		case len(items) == n: // also if it cannot be read: the next page tells
			next, err = seal.close(last)
			return items, next, err
		case q.plan.passes(err):
		case err != nil:
			return nil, "", err
		default:
			items = append(items, item)
		}
		last = raw
	}
	return items, "", nil
}

// seal makes page tokens of one query, and reads them.
type seal struct {
	cipher cipher.AEAD
	query  []byte // what a token is bound to
	keys   []string
}

const (
	// minSecret is the least length of a secret, in bytes.
	minSecret = 16
	// tokenBlock is what the lengths of tokens are multiples of, before base64: else they
	// would tell those of keys.
	tokenBlock = 256
)

// newCipher makes the cipher of page tokens; nil without a secret. The secret itself is
// kept nowhere.
func newCipher(secret []byte) (cipher.AEAD, error) {
	switch n := len(secret); {
	case n == 0:
		return nil, nil
	case n < minSecret:
		return nil, fmt.Errorf("%w: PageSecret has %d bytes, page tokens need %d at least, the same in all processes", ErrConfig, n, minSecret)
	}
	key := sha256.Sum256(append([]byte("dynahold page token 2\x00"), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("%w: PageSecret: %w", ErrConfig, err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("%w: PageSecret: %w", ErrConfig, err)
	}
	return aead, nil
}

func (t *mapping) sealOf(q *query) (*seal, error) {
	if t.pages == nil {
		return nil, fmt.Errorf("%w: page tokens need a TableConfig.PageSecret, the same in all processes", ErrConfig)
	}
	return &seal{cipher: t.pages, query: q.identity(), keys: q.keys}, nil
}

// identity is what a query asks for, however much of it at once: two that differ in
// nothing else have the same pages.
func (q *query) identity() []byte {
	in := q.input
	return fmt.Appendf(nil, "%q %q %v %v %q %q", *in.TableName, aws.ToString(in.IndexName), q.plan.descending, q.plan.unexpired, q.told(in.KeyConditionExpression), q.told(in.FilterExpression))
}

// told is an expression of the query with its names and values: the builder numbers them
// in any order.
func (q *query) told(expression *string) string {
	return placeholder.ReplaceAllStringFunc(aws.ToString(expression), func(p string) string {
		if p[0] == '#' {
			return strconv.Quote(q.input.ExpressionAttributeNames[p])
		}
		var value any
		text, err := attributevalue.MarshalJSON(q.input.ExpressionAttributeValues[p])
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err == nil {
			text, err = json.Marshal(value) // in the order of the keys of its maps
		}
		if err != nil { // the request will be refused, too
			return rand.Text()
		}
		return string(text)
	})
}

// placeholder is one of the package expression.
var placeholder = regexp.MustCompile(`[#:][0-9]+`)

// close makes the token of the page behind an item.
func (s *seal) close(last ddb.Item) (string, error) {
	at := ddb.Item{}
	for _, name := range s.keys {
		if last[name] == nil {
			return "", fmt.Errorf("%w: the item lacks the index's key attribute %q", ErrSchema, name)
		}
		at[name] = last[name]
	}
	plain, err := attributevalue.MarshalMapJSON(at)
	if err != nil {
		return "", err
	}
	rest := (tokenBlock - len(plain)%tokenBlock) % tokenBlock
	plain = append(plain, bytes.Repeat([]byte{' '}, rest)...) // which JSON allows
	return base64.RawURLEncoding.EncodeToString(s.cipher.Seal(nil, nil, plain, s.query)), nil
}

// open returns the place that a token stands for.
func (s *seal) open(token string) (ddb.Item, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") { // which the decoder passes over
		return nil, fmt.Errorf("%w: it is not base64", ErrPage)
	}
	plain, err := s.cipher.Open(nil, nil, sealed, s.query)
	if err != nil {
		return nil, fmt.Errorf("%w: it was altered, or is of another query, table, secret, or of an earlier version of the library", ErrPage)
	}
	return ParseImage(plain)
}
