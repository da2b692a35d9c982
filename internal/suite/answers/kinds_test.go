package answers_test

import (
	"bytes"
	stdjson "encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// kind is a false answer.
type kind struct {
	name   string
	status int
	header string // "Name: value", each on a line
	body   string
	marked bool // it has the service's checksum and id, which nobody but the service has by chance
	// known says that it is told by what the endpoint has answered before.
	known bool
	// of, if set, makes the body of that of the request.
	of func(request []byte) string
	// inside says that it is told by its body alone, which nobody sees behind a client that
	// drops the options of a call.
	inside bool
}

// hidden reports whether nothing can tell it from an answer of the service.
func (k *kind) hidden(way string) bool { return k.inside && way == "without options" }

const (
	xjson = "Content-Type: application/x-amz-json-1.0\n"
	json  = "Content-Type: application/json\n"
	html  = "Content-Type: text/html; charset=utf-8\n"
	text  = "Content-Type: text/plain\n"
	page  = "<html><body>Please log in</body></html>"
	own   = "com.amazonaws.dynamodb.v20120810#"
	coral = "com.amazon.coral.service#"
)

func typed(name string) string { return `{"__type":"` + name + `","message":"no"}` }

// kinds are those of proxies, gateways, portals, load balancers and other services.
var kinds = []kind{
	{name: "302 with Location", status: 302, header: html + "Location: http://portal.invalid/login", body: page},
	{name: "307 in JSON", status: 307, header: json + "Location: http://other.invalid/", body: `{"message":"moved"}`},
	{name: "304", status: 304},
	{name: "101", status: 101, header: "Upgrade: h2c"},
	{name: "403 page", status: 403, header: html, body: page},
	{name: "403 of a gateway", status: 403, header: json + "X-Amzn-Errortype: ForbiddenException\nX-Amzn-Requestid: 7c", body: `{"message":"Forbidden"}`},
	{name: "403 with a code", status: 403, header: json, body: `{"code":"AccessDeniedException","message":"no"}`},
	{name: "400, empty object", status: 400, header: xjson, body: `{}`},
	{name: "400, empty object with checksum", status: 400, header: xjson, body: `{}`, marked: true},
	{name: "400, text", status: 400, header: text, body: "bad request"},
	{name: "400, nothing", status: 400},
	{name: "407", status: 407, header: html, body: page},
	{name: "413", status: 413, header: text, body: "too large"},
	{name: "429 in JSON", status: 429, header: json, body: `{"message":"Too Many Requests"}`},
	{name: "429, throttled", status: 429, header: xjson, body: typed(own + "ThrottlingException"), marked: true},
	{name: "451", status: 451, header: html, body: page},
	{name: "another service's error", status: 400, header: xjson, body: typed("com.amazonaws.sqs#QueueDoesNotExist"), marked: true},
	{name: "another service's denial", status: 400, header: xjson, body: typed("com.amazonaws.kms#AccessDeniedException"), marked: true},
	{name: "another service's unknown client", status: 400, header: "Content-Type: application/x-amz-json-1.1\nX-Amzn-Requestid: 7c", body: typed(coral + "UnrecognizedClientException"), known: true},
	{name: "an error that there is not", status: 400, header: xjson, body: typed(own + "QuotaException"), marked: true},
	{name: "invalid, no checksum", status: 400, header: xjson, body: typed(own + "ValidationException"), known: true},
	{name: "no table, no checksum", status: 400, header: xjson, body: typed(own + "ResourceNotFoundException"), known: true},
	{name: "condition failed, no checksum", status: 400, header: xjson, body: typed(own + "ConditionalCheckFailedException"), known: true},
	{name: "conflict, no checksum", status: 400, header: xjson, body: typed(own + "TransactionConflictException"), known: true},
	{name: "throttled, no checksum", status: 400, header: xjson, body: typed(own + "ProvisionedThroughputExceededException"), known: true},
	{name: "condition failed, in the header", status: 400, header: xjson + "X-Amzn-Errortype: ConditionalCheckFailedException", body: `{"message":"no"}`, marked: true},
	{name: "cancelled, too many reasons", status: 400, header: xjson, marked: true, body: `{"__type":"` + own +
		`TransactionCanceledException","CancellationReasons":[` + strings.Repeat(`{"Code":"None"},`, 7) + `{"Code":"ConditionalCheckFailed"}]}`},
	{name: "cancelled, no reasons", status: 400, header: xjson, marked: true, body: `{"__type":"` + own + `TransactionCanceledException","CancellationReasons":[]}`},
	{name: "cancelled, for nothing", status: 400, header: xjson, marked: true, of: cancelled("None")},
	{name: "cancelled, for a reason that there is not", status: 400, header: xjson, marked: true, of: cancelled("QuotaExceeded")},
	{name: "condition failed, on another item", status: 400, header: xjson, marked: true, of: refusedBy(another)},
	{name: "condition failed, on an item of another table", status: 400, header: xjson, marked: true, of: refusedBy(elsewhere)},
	{name: "200, what a read of another item has found", status: 200, header: xjson, marked: true, inside: true, of: foundBy(another)},
	{name: "200, what a read of an item of another table has found", status: 200, header: xjson, marked: true, inside: true, of: foundBy(elsewhere)},
	{name: "200 page", status: 200, header: html, body: page},
	{name: "200, nothing", status: 200, header: xjson},
	{name: "200, empty object", status: 200, header: xjson, body: `{}`, known: true},
	{name: "200, a message", status: 200, header: json, body: `{"message":"ok"}`},
	{name: "200, a message with checksum", status: 200, header: xjson, body: `{"message":"ok"}`, marked: true, inside: true},
	{name: "200, another service's result with checksum", status: 200, header: xjson, body: ` {"MessageId":"7c","MD5OfMessageBody":"fafb00f5732ab283681e124bf8747ed1"}`, marked: true, inside: true},
	{name: "202", status: 202, header: xjson, body: `{}`, marked: true},
	{name: "204", status: 204},
	{name: "500 page", status: 500, header: html, body: page},
	{name: "503 in JSON", status: 503, header: json, body: `{"message":"Service Unavailable"}`},
}

// request is what a false answer takes from one.
type request struct {
	Key           item
	TransactItems []map[string]struct{ Key item }
	// Of several reads.
	RequestItems             map[string]struct{ Keys []item }
	KeyConditionExpression   string
	ExpressionAttributeNames map[string]string
}

type item = map[string]map[string]string

func requestOf(body []byte) (r request) {
	_ = stdjson.Unmarshal(body, &r)
	return r
}

func jsonOf(v any) string {
	text, _ := stdjson.Marshal(v) // texts in maps
	return string(text)
}

// cancels is a body with a reason for one item of a transaction, and none for the others.
func cancels(items, at int, reason string) string {
	reasons := slices.Repeat([]string{`{"Code":"None"}`}, items)
	if items > 0 {
		reasons[at] = reason
	}
	return `{"__type":"` + own + `TransactionCanceledException","CancellationReasons":[` + strings.Join(reasons, ",") + `]}`
}

func cancelled(code string) func(body []byte) string {
	return func(body []byte) string { return cancels(len(requestOf(body).TransactItems), 0, `{"Code":"`+code+`"}`) }
}

// another is an item with another key than was asked for.
func another(key item) item {
	other := item{}
	for name, typed := range key {
		for t := range typed {
			other[name] = map[string]string{t: "7"} // a text, a number
		}
	}
	return other
}

// elsewhere is an item of a table whose key has another name.
func elsewhere(item) item { return item{"elsewhere": {"S": "7"}} }

// refusedBy is the body of a failed condition on an item of those.
func refusedBy(other func(key item) item) func(body []byte) string {
	return func(body []byte) string {
		sent := requestOf(body)
		key, at := sent.Key, 0
		for i, item := range sent.TransactItems {
			for _, part := range item {
				if part.Key != nil {
					key, at = part.Key, i
				}
			}
		}
		if sent.TransactItems == nil {
			return `{"__type":"` + own + `ConditionalCheckFailedException","Item":` + jsonOf(other(key)) + `}`
		}
		return cancels(len(sent.TransactItems), at, `{"Code":"ConditionalCheckFailed","Item":`+jsonOf(other(key))+`}`)
	}
}

// foundBy is the body of a success of a read of such items, of the same kind if the request
// is a read: else of one of a single item.
func foundBy(other func(key item) item) func(body []byte) string {
	return func(body []byte) string {
		switch sent := requestOf(body); {
		case sent.TransactItems != nil && sent.TransactItems[0]["Get"].Key != nil:
			var found []string
			for _, item := range sent.TransactItems {
				found = append(found, `{"Item":`+jsonOf(other(item["Get"].Key))+`}`)
			}
			return `{"Responses":[` + strings.Join(found, ",") + `]}`
		case sent.RequestItems != nil:
			for table, of := range sent.RequestItems {
				return `{"Responses":{"` + table + `":[` + jsonOf(other(of.Keys[0])) + `]},"UnprocessedKeys":{}}`
			}
		case sent.KeyConditionExpression != "":
			key := item{}
			for _, name := range sent.ExpressionAttributeNames {
				key[name] = map[string]string{"S": ""}
			}
			return `{"Count":1,"Items":[` + jsonOf(other(key)) + `],"ScannedCount":1}`
		case sent.Key != nil:
			return `{"Item":` + jsonOf(other(sent.Key)) + `}`
		}
		return `{"Item":` + jsonOf(elsewhere(nil)) + `}`
	}
}

// answer makes it, of the request's body.
func (k kind) answer(req *http.Request, request []byte) *http.Response {
	if k.of != nil {
		k.body = k.of(request)
	}
	h := http.Header{}
	for line := range strings.Lines(k.header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		h.Set(name, value)
	}
	if k.marked {
		h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(k.body))), 10))
		h.Set("X-Amzn-Requestid", "7C")
	}
	return &http.Response{Status: strconv.Itoa(k.status), StatusCode: k.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: h,
		ContentLength: int64(len(k.body)), Body: io.NopCloser(bytes.NewReader([]byte(k.body)))}
}
