package repo_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/repo"
)

type unsent struct{ t *testing.T }

func (u *unsent) Do(*http.Request) (*http.Response, error) {
	u.t.Error("a request was sent for a token that nobody has made")
	return nil, errors.New("nobody is there")
}

// A page token comes from a client: what the table has not sealed is refused before
// anything is sent.
func FuzzPage(f *testing.F) {
	for _, token := range []string{"!", "3", "AAAA", "\r\n", base64.RawURLEncoding.EncodeToString(make([]byte, 300)), "eyJTIjp7IlMiOiJhIn19"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if token == "" {
			return // asks for the first page
		}
		client := dynamodb.New(dynamodb.Options{Region: "x", Credentials: aws.AnonymousCredentials{}, HTTPClient: &unsent{t}})
		table, err := repo.NewTable[textKeys](client, "table", repo.TableConfig{PageSecret: []byte("sixteen bytes at least")})
		if err != nil {
			t.Fatal(err)
		}
		if items, next, err := table.Page(t.Context(), "p", token); !errors.Is(err, repo.ErrPage) || next != "" || items != nil {
			t.Errorf("%q: %v, %q, %v", token, items, next, err)
		}
	})
}
