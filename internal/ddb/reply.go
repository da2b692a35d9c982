package ddb

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// reply is the body of a service's reply, watched while the SDK reads it. The
// SDK takes an empty body for an empty result, and only logs a checksum that is
// wrong.
type reply struct {
	io.ReadCloser
	status   int
	checksum string // as the service gave it, "" without one
	packed   bool   // the bytes are not JSON as such
	altered  bool   // the transport unpacked them: they have no checksum
	size     int64
	first    byte // of what is no space
	sum      uint32
	end      bool // read to its end
}

// watch puts the reply in the place of a response's body.
func (r *reply) watch(resp *http.Response) {
	*r = reply{ReadCloser: resp.Body, status: resp.StatusCode, checksum: resp.Header.Get(checksumHeader),
		packed: resp.Header.Get("Content-Encoding") != "", altered: resp.Uncompressed}
	if resp.Body == nil {
		r.ReadCloser = http.NoBody
	}
	resp.Body = r
}

func (r *reply) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.size += int64(n)
	r.sum = crc32.Update(r.sum, crc32.IEEETable, p[:n])
	for _, b := range p[:n] {
		if r.first != 0 {
			break
		}
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			r.first = b
		}
	}
	r.end = r.end || errors.Is(err, io.EOF)
	return n, err
}

// damaged says why a reply is not whole; nil: it is. strict asks for the
// checksum to fit, where there is one.
func (r *reply) damaged(strict bool) error {
	switch {
	case r.size == 0:
		return errEmpty
	case !r.end:
		return errors.New("it ended too early")
	case !r.packed && r.first != '{':
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

func (e *ReplyError) Error() string { return "the reply is not whole: " + e.Why.Error() }
func (e *ReplyError) Unwrap() error { return e.Why }

// checksumHeader has the CRC-32 of a reply's body.
const checksumHeader = "X-Amz-Crc32"

var (
	errEmpty        = errors.New("it is empty")
	errNoChecksum   = errors.New("it has no checksum, as replies of this endpoint had before")
	errNoAttributes = errors.New("it lacks the attributes that were asked for")
)

// believable checks a reply that says yes, or that a condition failed. A service
// that has once given a checksum always does; some that are compatible never do.
func (t *Table) believable(seen *sight) error {
	read := seen.reply
	var err error
	if read != nil {
		err = read.damaged(seen.strict)
	} else if raw, ok := awsmiddleware.GetRawResponse(seen.result).(*smithyhttp.Response); ok {
		// Sent out of sight: its body is gone, but not what was said about it.
		read = &reply{checksum: raw.Header.Get(checksumHeader), altered: raw.Uncompressed}
		if raw.ContentLength == 0 {
			err = errEmpty
		}
	} else {
		return nil
	}
	switch has := read.checksum != ""; {
	case err != nil:
	case has && !t.endpoint.sums.Load():
		t.endpoint.sums.Store(true)
	case !has && (seen.strict || !seen.ran) && !read.altered && t.endpoint.sums.Load():
		err = errNoChecksum
	}
	if err != nil {
		return &ReplyError{err}
	}
	return nil
}
