package once

import (
	"crypto/sha256"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// WithFingerprint is the store for a request whose fingerprint this is: all of it that
// makes it another request, such as its body, or a hash of that. Where the id was completed for
// a request with another fingerprint, or is run for one, or was by a process that has died
// since, Do is repo.ErrMismatch, and fn does not run; a run that has failed leaves none.
// Where either call has none the ids alone are compared.
//
//	receipt, err := once.Do(ctx, payments.WithFingerprint(body), customer+"/"+key, charge)
func (s *Store) WithFingerprint(fingerprint []byte) *Store {
	if s == nil {
		return nil // which the call refuses
	}
	of := *s
	of.request = append([]byte{}, fingerprint...)
	return &of
}

// checkRequest refuses a fingerprint that tells nothing apart.
func (s *Store) checkRequest() error {
	if s.request != nil && len(s.request) == 0 {
		return fmt.Errorf("%w: the fingerprint of a request is empty: use what differs where the request does, such as its body", repo.ErrConfig)
	}
	return nil
}

// requestBytes are so many of the SHA-256 of a fingerprint.
const requestBytes = 16

// mark is what a row keeps of a request; nil: of none.
func (s *Store) mark() types.AttributeValue {
	if s.request == nil {
		return nil
	}
	sum := sha256.Sum256(s.request)
	return ddb.Bytes(sum[:requestBytes])
}

// claim makes a run leave the mark of its request with its lock, or that it has none. A
// row without a completion is not taken from another request until it is forgotten: what
// that has done elsewhere, under the id, nobody knows.
func (s *Store) claim() *protocol.Claim {
	return &protocol.Claim{Attr: attrRequest, Value: s.mark(), Done: attrDone, Forgotten: s.locker.Clock().Add(-s.locker.Core.Retention)}
}

// isOther refuses what is of another request: that of the run which has the row's lock.
func (s *Store) isOther(row ddb.Item) error {
	kept, mine := row[attrRequest], s.mark()
	switch {
	case kept == nil || mine == nil || ddb.Equal(kept, mine):
		return nil
	case s.isDone(row):
		return fmt.Errorf("%w: it was completed for a request with another fingerprint; the operation has not run", repo.ErrMismatch)
	}
	return fmt.Errorf("%w: it is taken by a request with another fingerprint, which has not failed; the operation has not run", repo.ErrMismatch)
}
