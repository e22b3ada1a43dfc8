package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service/infer"
)

// AnswerData reads answers while they come, and holds none of them.
func (r remoteModels) AnswerData(ctx context.Context, ref string, ask infer.DataRequest, to infer.DataSink) (
	out infer.DataAnswers, err error,
) {
	if ask.Keep || to == nil {
		return out, &disdel.Error{
			Kind: disdel.Invalid, Op: "infer", Msg: "answers that a server keeps cannot be read from here",
			Hint: "--output FILE.csv has them sent",
		}
	}
	res, err := r.send(ctx, request{
		method: http.MethodPost, path: []string{"models", ref, "infer"},
		query: url.Values{"dataset": {ask.Dataset}, "part": {string(ask.Part)}},
	})
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	lines := json.NewDecoder(res.Body)
	for {
		var line apitypes.AnswerLine
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return out, &disdel.Error{
				Kind: disdel.Unavailable, Op: "infer", Msg: "the answers have not come whole", Hint: "ask again",
			}
		case err != nil:
			return out, r.silent(ctx, err)
		case line.Error != nil:
			return out, line.Error
		case line.End != nil:
			return *line.End, nil
		case line.Head != nil:
			err = to.Begin(*line.Head)
			out.DataHead = *line.Head
			if err != nil {
				return out, err
			}
		case line.Row != nil:
			if err := to.Take(*line.Row); err != nil {
				return out, err
			}
		}
	}
}
