package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/url"
	"path"
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
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// partSize is how much of a file goes to S3 at a time: the least that S3 takes, since a part is held beside weights.
const partSize = 5 << 20

// s3Bucket is a bucket of Amazon S3, or of a service with its API.
type s3Bucket struct {
	client     *s3.Client
	uploads    *transfermanager.Client
	name       string
	prefix     string // of every key
	encryption string // server-side, "" for the bucket's own
	key        string // of the key management service, for that encryption
}

// failure marks a service's answer with what Wrap understands.
func failure(err error) error {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.ErrorCode() {
	case "NoSuchKey", "NoSuchBucket", "NotFound":
		return errors.Join(err, fs.ErrNotExist)
	case "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken":
		return errors.Join(err, fs.ErrPermission)
	case "PreconditionFailed", "ConditionalRequestConflict":
		return errors.Join(err, fs.ErrExist)
	}
	return err
}

func (b *s3Bucket) at(key string) *string { return aws.String(b.prefix + key) }

type objectReader struct {
	io.ReadCloser
	size int64
}

func (r *objectReader) Size() int64 { return r.size }

func (b *s3Bucket) NewReader(ctx context.Context, key string) (Reader, error) {
	got, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: b.at(key)})
	if err != nil {
		return nil, failure(err)
	}
	return &objectReader{got.Body, aws.ToInt64(got.ContentLength)}, nil
}

// upload is a file on its way to S3: what is written goes through a pipe to the upload beside it.
type upload struct {
	*io.PipeWriter
	done chan error
}

func (b *s3Bucket) NewWriter(ctx context.Context, key string) (io.WriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, out := io.Pipe()
	u := &upload{PipeWriter: out, done: make(chan error, 1)}
	go func() {
		err := b.put(ctx, key, &untilDone{ctx, in}, nil)
		in.CloseWithError(err) //nolint:errcheck // it never fails; who writes after a failure gets it
		u.done <- err
	}()
	return u, nil
}

// untilDone ends an upload whose context has ended, though its writer was closed: half a file is none.
type untilDone struct {
	ctx context.Context //nolint:containedctx // of the upload that reads
	in  io.Reader
}

func (r *untilDone) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if stopped := r.ctx.Err(); stopped != nil {
		return 0, stopped
	}
	return n, err
}

func (u *upload) Close() error { return errors.Join(u.PipeWriter.Close(), <-u.done) }

func (b *s3Bucket) put(ctx context.Context, key string, content io.Reader, ifNoneMatch *string) error {
	in := &transfermanager.UploadObjectInput{
		Bucket: &b.name, Key: b.at(key), Body: content, IfNoneMatch: ifNoneMatch,
		ContentType:          aws.String("application/octet-stream"),
		ServerSideEncryption: types.ServerSideEncryption(b.encryption),
	}
	if b.key != "" {
		in.SSEKMSKeyID = &b.key
	}
	_, err := b.uploads.UploadObject(ctx, in)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err) // whatever the upload makes of it
	}
	return failure(err)
}

func (b *s3Bucket) Create(ctx context.Context, key string, data []byte) error {
	return b.put(ctx, key, bytes.NewReader(data), aws.String("*"))
}

func (b *s3Bucket) Size(ctx context.Context, key string) (int64, error) {
	got, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: b.at(key)})
	if err != nil {
		return 0, failure(err)
	}
	return aws.ToInt64(got.ContentLength), nil
}

func (b *s3Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: b.at(key)})
	return failure(err)
}

func (b *s3Bucket) pages(prefix, delimiter string) *s3.ListObjectsV2Paginator {
	in := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: b.at(prefix)}
	if delimiter != "" {
		in.Delimiter = &delimiter
	}
	return s3.NewListObjectsV2Paginator(b.client, in)
}

func (b *s3Bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for pages := b.pages(prefix, ""); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, failure(err))
				return
			}
			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
				if !yield(Object{key, aws.ToInt64(o.Size), aws.ToTime(o.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

func (b *s3Bucket) Folders(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	for pages := b.pages(prefix, "/"); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, failure(err)
		}
		for _, p := range page.CommonPrefixes {
			out = append(out, path.Base(aws.ToString(p.Prefix)))
		}
	}
	return out, nil
}

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
