package main

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// awsFlags say which DynamoDB is meant, as in every AWS tool, and how to print.
type awsFlags struct {
	Endpoint  string            `placeholder:"URL" group:"aws" help:"Another endpoint than that of the region, such as http://127.0.0.1:8000."`
	Region    string            `placeholder:"REGION" group:"aws" help:"Region; default: that of the environment or the profile."`
	Profile   string            `placeholder:"NAME" group:"aws" help:"Profile of the shared configuration."`
	Attribute map[string]string `placeholder:"ROLE=NAME" group:"aws" help:"Another name of one of the library's attributes, as the programs have it in TableConfig.Attributes: --attribute LockedBy=holder."`
	Output    string            `short:"o" enum:"table,json" default:"table" group:"output" help:"What to print: table or json."`
}

// tableFlags name a table.
type tableFlags struct {
	awsFlags
	Table string `arg:"" help:"Name or ARN of the table."`
}

// consent lets a command do without asking what it asks for on a terminal.
type consent struct {
	Yes bool `short:"y" help:"Do not ask."`
}

// service is the DynamoDB that the flags and the environment name, and the settings
// of its tables.
func (f *awsFlags) service(ctx context.Context) (*dynamodb.Client, repo.TableConfig, error) {
	cfg, err := f.tableConfig()
	if err != nil {
		return nil, cfg, err
	}
	client, err := f.client(ctx)
	return client, cfg, err
}

// client talks to that service. One on this machine needs neither region nor
// credentials.
func (f *awsFlags) client(ctx context.Context) (*dynamodb.Client, error) {
	endpoint, local, err := localdb.Config{Endpoint: f.Endpoint}.Given()
	if err != nil {
		return nil, usage("%s", strings.TrimPrefix(strings.Replace(err.Error(), "Config.Endpoint", "--endpoint", 1), "localdb: "))
	}
	if endpoint != "" && local && f.Profile == "" {
		engine, err := localdb.Start(ctx, localdb.Config{Endpoint: endpoint, Options: []func(*dynamodb.Options){func(o *dynamodb.Options) {
			o.Region = cmp.Or(f.Region, o.Region)
		}}})
		if err != nil {
			return nil, err
		}
		return engine.Client(), nil
	}
	var load []func(*config.LoadOptions) error
	if f.Region != "" {
		load = append(load, config.WithRegion(f.Region))
	}
	if f.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(f.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	switch {
	case err != nil:
		return nil, err
	case cfg.Region == "":
		return nil, usage("no region: set --region or AWS_REGION, or name a --profile that has one")
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if f.Endpoint != "" {
			o.BaseEndpoint = aws.String(f.Endpoint)
		}
	}), nil
}

// tableConfig are the library's settings of the table.
func (f *awsFlags) tableConfig() (cfg repo.TableConfig, err error) {
	names := reflect.ValueOf(&cfg.Attributes).Elem()
	for role, name := range f.Attribute {
		field := names.FieldByName(role)
		if !field.IsValid() || name == "" {
			var roles []string
			for i := range names.NumField() {
				roles = append(roles, names.Type().Field(i).Name)
			}
			slices.Sort(roles)
			return cfg, usage("--attribute must be ROLE=NAME with one of the roles %s, not %s=%s", strings.Join(roles, ", "), role, name)
		}
		field.SetString(name)
	}
	return cfg, nil
}
