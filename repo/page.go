package repo

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/dynahold/dynahold/internal/ddb"
)

const defaultPage = 100

// Page reads one page of a query, for clients that ask for the next one later: at
// most as many items as Limit says (default 100), and a token of the next page, ""
// after the last. token is "" for the first page. A token is encrypted with
// TableConfig.PageSecret, and says neither a key nor a number: whoever has it can do
// nothing with it but ask for the page, of the same partition, in the same order.
// ErrPage if it was altered. It stays valid; what is written meanwhile is in the
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
		q.input.Limit = aws.Int32(int32(min(n+1, maxPageSize))) // one more tells whether there is a next page
	}
	var last ddb.Item
	for raw, err := range t.queryPages(ctx, q) {
		if err != nil {
			return nil, "", err
		}
		item, shown, err := t.shown(raw, q.plan.unexpired)
		if err != nil {
			return nil, "", err
		}
		if !shown {
			continue
		}
		if len(items) == n {
			next, err = seal.close(last)
			return items, next, err
		}
		items, last = append(items, item), raw
	}
	return items, "", nil
}

// seal makes page tokens of one query, and reads them.
type seal struct {
	cipher cipher.AEAD
	query  []byte // what a token is bound to
	keys   []string
}

// minSecret is the least length of a secret, in bytes.
const minSecret = 16

func (t *mapping) sealOf(q *query) (*seal, error) {
	secret := t.cfg.PageSecret
	if len(secret) == 0 {
		return nil, fmt.Errorf("%w: page tokens need a TableConfig.PageSecret, the same in all processes", ErrConfig)
	}
	key := sha256.Sum256(append([]byte("dynahold page token 1\x00"), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("%w: PageSecret: %w", ErrConfig, err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("%w: PageSecret: %w", ErrConfig, err)
	}
	partition, err := attributevalue.MarshalJSON(q.partition)
	if err != nil {
		return nil, fmt.Errorf("%w: the partition key: %w", ErrKey, err)
	}
	query := fmt.Sprintf("%q %q %v %s", t.Name(), aws.ToString(q.input.IndexName), q.plan.descending, partition)
	return &seal{cipher: aead, query: []byte(query), keys: q.keys}, nil
}

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
	return base64.RawURLEncoding.EncodeToString(s.cipher.Seal(nil, nil, plain, s.query)), nil
}

// open returns the place that a token stands for.
func (s *seal) open(token string) (ddb.Item, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return nil, fmt.Errorf("%w: it is not base64", ErrPage)
	}
	plain, err := s.cipher.Open(nil, nil, sealed, s.query)
	if err != nil {
		return nil, fmt.Errorf("%w: it was altered, or is of another query, table or secret", ErrPage)
	}
	return ParseImage(plain)
}
