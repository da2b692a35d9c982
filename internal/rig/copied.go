package rig

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
)

// Copied is a client whose requests a test can copy.
func Copied() (*dynamodb.Client, *fault.Copier) {
	var c *fault.Copier
	return Client(func(o *dynamodb.Options) {
		c = fault.NewCopier(o.HTTPClient)
		o.HTTPClient = c
	}), c
}
