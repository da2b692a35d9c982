package tablecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// checkPolicy reads the policy and refuses actions that DynamoDB does not
// have and tables that the templates do not make.
func checkPolicy(text string) error {
	var policy struct {
		Version   string
		Statement []struct {
			Sid, Effect string
			Action      []string
			Resource    any // one or a list
		}
	}
	strict := json.NewDecoder(bytes.NewReader([]byte(text)))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&policy); err != nil {
		return err
	}
	if policy.Version != "2012-10-17" || len(policy.Statement) == 0 {
		return fmt.Errorf("version %q, %d statements", policy.Version, len(policy.Statement))
	}
	client := reflect.TypeFor[*dynamodb.Client]()
	for _, s := range policy.Statement {
		if s.Effect != "Allow" || len(s.Action) == 0 {
			return fmt.Errorf("statement %s: effect %q, %d actions", s.Sid, s.Effect, len(s.Action))
		}
		for _, action := range s.Action {
			operation, ok := strings.CutPrefix(action, "dynamodb:")
			_, known := client.MethodByName(operation)
			// The one action that is not the name of a request.
			if !ok || (!known && operation != "ConditionCheckItem") {
				return fmt.Errorf("statement %s: %q is no action of DynamoDB", s.Sid, action)
			}
		}
		resources, ok := s.Resource.([]any)
		if !ok {
			resources = []any{s.Resource}
		}
		for _, r := range resources {
			name, ok := strings.CutPrefix(fmt.Sprint(r), "arn:aws:dynamodb:REGION:ACCOUNT:table/")
			if !ok || !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
				return fmt.Errorf("statement %s: resource %v is none of the tables", s.Sid, r)
			}
		}
		// What can be required has a row in each table but those of items and mail.
		if s.Sid == "Require" && len(resources) != len(names)-2 {
			return fmt.Errorf("statement Require: %v: what is required can be in each of %v but items and mail", resources, names)
		}
	}
	return nil
}
