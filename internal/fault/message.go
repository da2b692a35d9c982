package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// readBody reads a request's body to its end and closes it, as every HTTP
// client must, also where the request goes no further.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	return body, errors.Join(err, req.Body.Close())
}

// Body reads a request's body, and puts it back.
func Body(req *http.Request) ([]byte, error) {
	body, err := readBody(req)
	SetBody(req, body)
	return body, err
}

// SetBody gives a request another body.
func SetBody(req *http.Request, body []byte) {
	req.Body, req.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
}

// copyOf is the request once more: headers and signature are the same, so that
// the engine cannot tell a copy from the original.
func copyOf(ctx context.Context, req *http.Request, body []byte) *http.Request {
	c := req.Clone(ctx)
	SetBody(c, body)
	return c
}

// whole reads an answer to its end, so that the engine has surely acted, and
// puts it back.
func whole(resp *http.Response, err error) (*http.Response, []byte, error) {
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, body, nil
}

// truncated announces half of an answer as all of it. The checksum in
// X-Amz-Crc32 stays that of the whole, as when a proxy damages an answer.
func truncated(resp *http.Response, body []byte) *http.Response {
	half := body[:len(body)/2]
	resp.Body = io.NopCloser(bytes.NewReader(half))
	resp.ContentLength = int64(len(half))
	resp.Header.Set("Content-Length", strconv.Itoa(len(half)))
	return resp
}

// cut breaks the connection after half of an answer.
func cut(resp *http.Response, body []byte) *http.Response {
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{}))
	return resp
}

// broken is a connection that ended in the middle of an answer.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// blank is a success that the service did not send: it has no checksum.
func blank(req *http.Request, body string) *http.Response {
	resp := answer(req, http.StatusOK, "")
	resp.Header.Del("X-Amz-Crc32")
	resp.Header.Del("X-Amzn-Requestid")
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return resp
}

// withoutImages takes the items out of the answer of a failed condition, as
// servers send it that know no ReturnValuesOnConditionCheckFailure.
func withoutImages(resp *http.Response, body []byte) (*http.Response, error) {
	if resp.StatusCode != http.StatusBadRequest {
		return resp, nil
	}
	var said map[string]any
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	delete(said, "Item")
	reasons, _ := said["CancellationReasons"].([]any)
	for _, reason := range reasons {
		if r, ok := reason.(map[string]any); ok {
			delete(r, "Item")
		}
	}
	body, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	return resp, nil
}

// Conflict is the error of a request that met a transaction on one of its items. One that
// is a transaction itself is cancelled, with a reason for each item: which one it met
// another at is said by at.
func Conflict(req *http.Request, op string, body []byte, at int) *http.Response {
	var sent struct{ TransactItems []json.RawMessage }
	if op != "TransactWriteItems" && op != "TransactGetItems" || json.Unmarshal(body, &sent) != nil || len(sent.TransactItems) == 0 {
		return answer(req, http.StatusBadRequest, "TransactionConflictException")
	}
	reasons := slices.Repeat([]string{`{"Code":"None"}`}, len(sent.TransactItems))
	reasons[at] = `{"Code":"TransactionConflict","Message":"injected"}`
	return failure(req, http.StatusBadRequest, "TransactionCanceledException", `,"CancellationReasons":[`+strings.Join(reasons, ",")+`]`)
}

// answer is an error as DynamoDB sends it.
func answer(req *http.Request, status int, code string) *http.Response {
	return failure(req, status, code, "")
}

// failure is answer with more in its body.
func failure(req *http.Request, status int, code, more string) *http.Response {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"injected"` + more + `}`
	return &http.Response{
		Status:     strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode: status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Request:    req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"INJECTED"},
			"X-Amz-Crc32": {strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10)}},
		ContentLength: int64(len(body)),
		Body:          io.NopCloser(bytes.NewReader([]byte(body))),
	}
}
