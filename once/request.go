package once

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// WithFingerprint is the store for a request whose fingerprint this is: all of it that
// makes it another request, such as its body, or a hash of that. Where the id was completed
// for a request with another fingerprint, Do is repo.ErrMismatch, and fn does not run.
// Where either call has none the ids alone are compared.
//
//	receipt, err := once.Do(ctx, payments.WithFingerprint(body), customer+"/"+key, charge)
func (s *Store) WithFingerprint(fingerprint []byte) *Store {
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

// mark is what a row keeps of the request of the run that completes it: with the run's
// token, for a later run may have no fingerprint.
func (s *Store) mark(token int64) []byte {
	sum := sha256.Sum256(s.request)
	return append(binary.BigEndian.AppendUint64(nil, uint64(token)), sum[:requestBytes]...)
}

// setRequest makes the completion of a run keep its request.
func (s *Store) setRequest(w *protocol.Write, token int64) {
	if s.request != nil {
		w.Set(attrRequest, ddb.Bytes(s.mark(token)))
	}
}

// isOther refuses what was completed for another request.
func (s *Store) isOther(id string, made *completed) error {
	kept, ok := made.request.(*types.AttributeValueMemberB)
	if s.request == nil || !ok {
		return nil
	}
	token, err := ddb.Int(made.done)
	if err != nil {
		return fmt.Errorf("%w: id %q: attribute %q: %w", repo.ErrSchema, id, attrDone, err)
	}
	mine := s.mark(token)
	if len(kept.Value) != len(mine) || !bytes.Equal(kept.Value[:8], mine[:8]) || bytes.Equal(kept.Value, mine) {
		return nil // it is of a run that is forgotten, or of the same request
	}
	return fmt.Errorf("%w: id %q was completed for a request with another fingerprint; the operation has not run", repo.ErrMismatch, id)
}
