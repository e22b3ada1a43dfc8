package blobs

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// s3Settings is what the options of an s3:// URL say; they have the names that Go CDK gave them, which users know.
type s3Settings struct {
	load             []func(*config.LoadOptions) error
	client           []func(*s3.Options)
	endpoint, role   string
	prefix           string
	encryption, key  string
	requestChecksums aws.RequestChecksumCalculation
}

// textOptions and flagOptions are the options that an s3:// URL may have.
var (
	textOptions = map[string]func(*s3Settings, string){
		"prefix":   func(s *s3Settings, v string) { s.prefix = v },
		"region":   func(s *s3Settings, v string) { s.load = append(s.load, config.WithRegion(v)) },
		"profile":  func(s *s3Settings, v string) { s.load = append(s.load, config.WithSharedConfigProfile(v)) },
		"endpoint": func(s *s3Settings, v string) { s.endpoint = v },
		"role":     func(s *s3Settings, v string) { s.role = v },
		"ssetype":  func(s *s3Settings, v string) { s.encryption = v },
		"kmskeyid": func(s *s3Settings, v string) { s.key = v },
		"awssdk":   func(*s3Settings, string) {}, // there is one SDK
	}
	flagOptions = map[string]func(*s3Settings, bool){
		"use_path_style":   pathStyle,
		"s3ForcePathStyle": pathStyle,
		"accelerate": func(s *s3Settings, v bool) {
			s.client = append(s.client, func(o *s3.Options) { o.UseAccelerate = v })
		},
		"disable_https": func(s *s3Settings, v bool) {
			s.client = append(s.client, func(o *s3.Options) { o.EndpointOptions.DisableHTTPS = v })
		},
		"dualstack": func(s *s3Settings, v bool) {
			if v {
				s.load = append(s.load, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
			}
		},
		"fips": func(s *s3Settings, v bool) {
			if v {
				s.load = append(s.load, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
			}
		},
		"anonymous": func(s *s3Settings, v bool) {
			if v {
				s.load = append(s.load, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
			}
		},
	}
)

func pathStyle(s *s3Settings, v bool) {
	s.client = append(s.client, func(o *s3.Options) { o.UsePathStyle = v })
}

// readS3 reads the options of an s3:// URL.
func readS3(options url.Values) (*s3Settings, error) {
	s := &s3Settings{}
	for name, values := range options {
		value := values[0]
		if set, ok := textOptions[name]; ok {
			set(s, value)
			continue
		}
		if set, ok := flagOptions[name]; ok {
			yes, err := strconv.ParseBool(value)
			if err != nil {
				return nil, fmt.Errorf("%s=%s: it is true or false", name, value)
			}
			set(s, yes)
			continue
		}
		if err := s.checksums(name, value); err != nil {
			return nil, err
		}
	}
	if s.role != "" && !strings.HasPrefix(s.role, "arn:") {
		return nil, fmt.Errorf("role=%s: no ARN, which begins with arn: and names an account", s.role)
	}
	return s, nil
}

// checksums reads the two options that services with older APIs need.
func (s *s3Settings) checksums(name, value string) error {
	required, ok := map[string]bool{"when_required": true, "when_supported": false}[value]
	switch name {
	case "request_checksum_calculation":
		s.requestChecksums = aws.RequestChecksumCalculationWhenSupported
		if required {
			s.requestChecksums = aws.RequestChecksumCalculationWhenRequired
		}
		s.load = append(s.load, config.WithRequestChecksumCalculation(s.requestChecksums))
	case "response_checksum_validation":
		validation := aws.ResponseChecksumValidationWhenSupported
		if required {
			validation = aws.ResponseChecksumValidationWhenRequired
		}
		s.load = append(s.load, config.WithResponseChecksumValidation(validation))
	default:
		known := slices.Concat(slices.Collect(maps.Keys(textOptions)), slices.Collect(maps.Keys(flagOptions)))
		slices.Sort(known)
		return fmt.Errorf("unknown option %q; there are %s, request_checksum_calculation and response_checksum_validation",
			name, strings.Join(known, ", "))
	}
	if !ok {
		return fmt.Errorf("%s=%s: it is when_required or when_supported", name, value)
	}
	return nil
}

// abortIn is how long the parts of an upload that was given up may take to be thrown away; kept, they cost money.
const abortIn = 10 * time.Second

func openS3(ctx context.Context, u *url.URL) (Bucket, error) {
	if u.Host == "" {
		return nil, fmt.Errorf("no bucket is named; %s", addressHint)
	}
	s, err := readS3(u.Query())
	if err != nil {
		return nil, err
	}
	settings, err := s.config(ctx)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(settings, s.client...)
	return &s3Bucket{
		client: client, name: u.Host, prefix: s.prefix, encryption: s.encryption, key: s.key,
		uploads: transfermanager.New(client, func(o *transfermanager.Options) {
			o.FailTimeout = abortIn
			o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency = partSize, partSize, 1
			o.RequestChecksumCalculation = settings.RequestChecksumCalculation
		}),
	}, nil
}

// config is the SDK's: the machine's settings with those of the URL over them.
func (s *s3Settings) config(ctx context.Context) (aws.Config, error) {
	load := append(s.load, config.WithRetryer(func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.RateLimiter = ratelimit.None })
	}))
	settings, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return settings, err
	}
	if s.role != "" {
		settings.Credentials = aws.NewCredentialsCache(
			stscreds.NewAssumeRoleProvider(sts.NewFromConfig(settings), s.role))
	}
	if s.endpoint != "" {
		settings.BaseEndpoint = &s.endpoint
	}
	return settings, nil
}
