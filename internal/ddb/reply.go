package ddb

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// reply is the body of a service's reply, watched while the SDK reads it. The
// SDK takes an empty body for an empty result, and only logs a checksum that is
// wrong.
type reply struct {
	io.ReadCloser
	head             // what stands before it
	packed  string   // how its bytes are packed; "": they are JSON as such
	altered bool     // the transport unpacked them: their checksum cannot be compared
	kept    []byte   // of an error, or without a checksum: what was read
	start   [48]byte // how it begins
	size    int64
	first   byte // of what is no space
	sum     uint32
	end     bool // read to its end
}

// head is what the status and the headers of an answer say.
type head struct {
	status     int
	redirected bool
	titled     bool   // it names an error
	content    string // media type
	checksum   string // as the service gave it, "" without one
	id         bool
}

func headOf(resp *http.Response) head {
	content, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return head{status: resp.StatusCode, redirected: resp.Request != nil && resp.Request.Method != http.MethodPost, content: strings.ToLower(strings.TrimSpace(content)),
		checksum: resp.Header.Get(checksumHeader), id: resp.Header.Get(idHeader) != "",
		titled: resp.Header.Get(errorHeader) != ""}
}

// watch puts the reply in the place of a response's body.
func (r *reply) watch(resp *http.Response) {
	*r = reply{ReadCloser: resp.Body, head: headOf(resp), packed: resp.Header.Get("Content-Encoding"), altered: resp.Uncompressed}
	if resp.Body == nil {
		r.ReadCloser = http.NoBody
	}
	resp.Body = r
}

func (r *reply) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.size < int64(len(r.start)) {
		copy(r.start[r.size:], p[:n])
	}
	r.size += int64(n)
	r.sum = crc32.Update(r.sum, crc32.IEEETable, p[:n])
	if r.keeps() {
		r.kept = append(r.kept, p[:n]...)
	}
	if text := bytes.TrimLeft(p[:n], " \t\r\n"); r.first == 0 && len(text) > 0 {
		r.first = text[0]
	}
	r.end = r.end || errors.Is(err, io.EOF)
	return n, err
}

// keeps reports whether it is looked at what the reply says, and not only what the SDK
// makes of it.
func (r *reply) keeps() bool { return r.status != http.StatusOK || r.checksum == "" }

// text is what was kept, as JSON.
func (r *reply) text() []byte {
	if r.packed != "gzip" {
		return r.kept
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(r.kept))
	if err != nil {
		return nil
	}
	all, err := io.ReadAll(unpacked)
	if err != nil {
		return nil
	}
	return all
}

// damaged says why a reply is not whole; nil: it is. strict asks for the
// checksum to fit, where there is one.
func (r *reply) damaged(strict bool) error {
	switch {
	case r.size == 0:
		return errEmpty
	case !r.end:
		return errors.New("it ended too early")
	case r.packed == "" && r.first != '{':
		return errors.New("it is not a JSON object")
	case !strict || r.altered || r.checksum == "":
		return nil
	}
	if want, err := strconv.ParseUint(r.checksum, 10, 32); err != nil || uint32(want) != r.sum {
		return fmt.Errorf("its checksum is not %s", r.checksum)
	}
	return nil
}

// ReplyError is why a reply cannot be believed, whatever it says.
type ReplyError struct{ Why error }

func (e *ReplyError) Error() string { return "the reply proves nothing: " + e.Why.Error() }
func (e *ReplyError) Unwrap() error { return e.Why }

// RetryableError tells the SDK's policies, and whoever asks as they do, that another
// attempt may have the service's reply.
func (e *ReplyError) RetryableError() bool { return true }

// checksumHeader has the CRC-32 of a reply's body.
const checksumHeader = "X-Amz-Crc32"

const (
	// idHeader has the id of a request, as the service's log knows it.
	idHeader = "X-Amzn-Requestid"
	// errorHeader names the error of other services, and comes before the body's for the SDK.
	errorHeader = "X-Amzn-Errortype"
)

var (
	errEmpty        = errors.New("it is empty")
	errNoAttributes = errors.New("it lacks the attributes that were asked for")
)

// unproven is the error of a reply that is not certainly the service's own, in the place of
// err; nil: it is, or there is none. A 5xx proves nothing as it is.
func (t *Table) unproven(op string, seen *sight, err error) error {
	a, ok := seen.answer(op, err)
	if !ok || a.status >= http.StatusInternalServerError {
		return nil
	}
	before := habits{t.endpoint.sums.Load(), t.endpoint.ids.Load()}
	if seen.ran && !seen.strict {
		before = habits{} // its user wants no checksums
	}
	if why := a.foreign(before); why != nil {
		return &ReplyError{why}
	}
	if err != nil && !is[*types.ConditionalCheckFailedException](err) {
		return nil // what is granted now and then teaches enough
	}
	if a.checksum && !before.checksums {
		t.endpoint.sums.Store(true)
	}
	if a.id && !before.ids {
		t.endpoint.ids.Store(true)
	}
	return nil
}

// made is what the SDK has made of an attempt's answer.
type made int

const (
	nothing    made = iota // there was no answer, or it could not be read to its end
	success                // the service's yes
	failure                // an error of the service
	unreadable             // none of them
)

func madeOf(err error) (made, smithy.APIError) {
	if err == nil {
		return success, nil
	}
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		return failure, api
	case is[*smithy.DeserializationError](err):
		return unreadable, nil
	}
	return nothing, nil
}

// answer is what was seen of an attempt's answer; false: nothing that could be judged, for
// there was none, or it could not be read to its end.
func (s *sight) answer(op string, err error) (a answer, ok bool) {
	how, api := madeOf(err)
	if how == nothing || s.unsent() {
		return a, false
	}
	a = answer{op: op, parts: s.parts}
	if how == failure {
		a.code, a.reasons = api.ErrorCode(), codesOf(err)
	}
	if s.reply != nil {
		ok = a.watched(s.reply, s.strict)
	} else {
		ok = a.unwatched(s.raw(err)) //nolint:bodyclose // the SDK has read it to its end
	}
	if how == unreadable { // the SDK says more of one that has not arrived
		ok = ok && (s.reply == nil || s.reply.end) && (a.broken != nil || a.status != http.StatusOK)
	}
	return a, ok
}

// watched takes in a reply whose body was seen; false: there was none.
func (a *answer) watched(r *reply, strict bool) bool {
	if r.status == 0 {
		return false
	}
	a.of(r.head)
	a.broken, a.seen = r.damaged(strict), true
	switch {
	case a.code != "":
		a.kind = typeOf(r.text())
	case a.status == http.StatusOK && !a.checksum:
		a.members = membersOf(r.text(), successes[a.op])
	case a.status == http.StatusOK && r.packed == "":
		a.members = firstMember(r.start[:min(r.size, int64(len(r.start)))], successes[a.op])
	}
	return true
}

// unwatched takes in a response to what was sent out of sight; false: it is not known.
// Its body is gone, but not what was said about it.
func (a *answer) unwatched(resp *http.Response) bool {
	if resp == nil {
		return false
	}
	a.of(headOf(resp))
	if resp.ContentLength == 0 {
		a.broken = errEmpty
	}
	return true
}

func (a *answer) of(h head) {
	a.status, a.redirected, a.content, a.checksum, a.id, a.titled = h.status, h.redirected, h.content, h.checksum != "", h.id, h.titled
}

// raw is the response of a request that was sent out of sight; nil: it is not known.
func (s *sight) raw(err error) *http.Response {
	var failed *smithyhttp.ResponseError
	if errors.As(err, &failed) && failed.Response != nil {
		return failed.Response.Response
	}
	if resp, ok := awsmiddleware.GetRawResponse(s.result).(*smithyhttp.Response); ok && resp != nil {
		return resp.Response
	}
	return nil
}
