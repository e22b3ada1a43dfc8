package render

// LabDescription is what the command says of itself.
const LabDescription = "TRACE is as disdel simulate has it; each job runs alone. FILE is a job file: its times are " +
	"the law of its\n   forecasts, so that it has to have run before, or --probe; " +
	"with --run it runs under each policy.\n\n" +
	"   disdel lab --generate 5 --policies elastic,coach,auto\n" +
	"   disdel lab trace.jsonl --hosts 2 --processors 16 --plot workers.svg\n" +
	"   disdel lab trace.jsonl --policies coach,auto --errors .25,.5,2,4,noise:.2\n" +
	"   disdel lab job.yaml --policies static,auto --run"
