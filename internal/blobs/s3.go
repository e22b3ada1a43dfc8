package blobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
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
