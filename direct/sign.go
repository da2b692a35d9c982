package direct

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/encoding/httpbinding"
)

// scheme is how the requests of an example are signed: Signature Version 4, by the
// headers that the example has signed, for its region. The SDK's signer finds that out
// anew for each request, which took a third of the time of a direct one. That this
// comes to the same is tried with each example ([path.learn]).
type scheme struct {
	host    string
	path    string // as it is signed
	names   string // of the signed headers
	headers []header
	scope   string // but for the date
	session bool   // there is a session's token
}

// header is one that is signed: as its line has it, and as a request has it.
type header struct{ name, key string }

const algorithm = "AWS4-HMAC-SHA256"

// schemeOf reads how a request is signed.
func schemeOf(u *url.URL, host string, h http.Header) (s scheme, ok bool) {
	credential, rest, _ := strings.Cut(strings.TrimPrefix(h.Get(authorization), algorithm+" Credential="), ", SignedHeaders=")
	names, _, ok := strings.Cut(rest, ", Signature=")
	parts := strings.SplitN(credential, "/", 3)
	if !ok || len(parts) != 3 || u.RawQuery != "" {
		return scheme{}, false
	}
	s = scheme{host: cmp.Or(host, u.Host), path: httpbinding.EscapePath(u.EscapedPath(), false), names: names, scope: "/" + parts[2], session: h.Get(token) != ""}
	for name := range strings.SplitSeq(names, ";") {
		s.headers = append(s.headers, header{name, http.CanonicalHeaderKey(name)})
	}
	return s, true
}

// sign signs a request whose body has a hash.
func (p *path) sign(s *scheme, req *http.Request, hash string, c *aws.Credentials, now time.Time) {
	stamp := now.UTC().Format(stamps)
	req.Header[date] = []string{stamp}
	if s.session {
		req.Header[token] = []string{c.SessionToken}
	}
	var room [1024]byte
	text := append(room[:0], req.Method...)
	text = append(append(append(text, '\n'), s.path...), "\n\n"...)
	for _, h := range s.headers {
		text = append(append(text, h.name...), ':')
		switch h.name {
		case "host":
			text = append(text, s.host...)
		case "content-length":
			text = strconv.AppendInt(text, req.ContentLength, 10)
		default:
			text = append(text, strings.TrimSpace(req.Header.Get(h.key))...)
		}
		text = append(text, '\n')
	}
	text = append(append(append(append(text, '\n'), s.names...), '\n'), hash...)
	digest := sha256.Sum256(text)
	scope := stamp[:len("20060102")] + s.scope
	signed := algorithm + "\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(digest[:])
	signature := hex.EncodeToString(mac(p.key(c, scope), []byte(signed)))
	req.Header[authorization] = []string{algorithm + " Credential=" + c.AccessKeyID + "/" + scope + ", SignedHeaders=" + s.names + ", Signature=" + signature}
}

const stamps = "20060102T150405Z"

// derived is the key that a secret makes for a scope: one day, region and service.
type derived struct {
	secret, scope string
	key           []byte
}

func (p *path) key(c *aws.Credentials, scope string) []byte {
	if d := p.derived.Load(); d != nil && d.secret == c.SecretAccessKey && d.scope == scope {
		return d.key
	}
	d := &derived{c.SecretAccessKey, scope, []byte("AWS4" + c.SecretAccessKey)}
	for part := range bytes.SplitSeq([]byte(scope), []byte("/")) {
		d.key = mac(d.key, part)
	}
	p.derived.Store(d)
	return d.key
}

func mac(key, text []byte) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write(text) // a hash never fails
	return m.Sum(nil)
}

// sum is the SHA-256 of a body, as a signature has it.
func sum(body []byte) string {
	digest := sha256.Sum256(body)
	return hex.EncodeToString(digest[:])
}
