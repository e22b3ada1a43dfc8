package robust

// checks are the tests of reliability (R) and of security (S), in the order of docs/reference/robustness.md.
var checks = []check{
	{
		id: "R1", what: "1,000 small jobs at once", run: smallJobs,
		note: "by ten tenants on one server with embedded stores; times are printed",
	},
	{
		id: "R2", what: "kill -9 of actions", run: killedActions,
		tests: []named{{"internal/cli", "TestWhatIsKilledComesToTheSameWeights"}},
	},
	{
		id: "R3", what: "kill -9 of aggregations", note: "at random moments, and at each call to Redis",
		run: func(c *trial) { killedAggregates(c); edges(c) },
	},
	{id: "R4", what: "kill -9 of disdel", run: killedControllers, tests: []named{
		{"internal/cli", "TestTheJobsOfAKilledServerAreFinished"},
		{"service", "TestAKeyMeansOneJob"},
	}},
	{id: "R5", what: "Redis restarted, emptied, too small", run: lostRedis, tests: []named{
		{"aggregator", "TestARestartOfRedisIsWaitedFor|TestAFullStoreRefusesByName"},
		{"internal/cli", "TestATooSmallRedisRefusesTheJob"},
	}},
	{
		id: "R6", what: "history away", note: "2 s after the job's end, or as long as DISDEL_ROBUST_OUTAGE says",
		run: func(c *trial) { lostHistory(c); lostHistoryOfServe(c) },
		tests: []named{
			{"internal/cli", "TestARecordOutlivesAHistoryThatIsAway"},
			{"service", "TestAHistoryThatComesBackIsGivenTheEnd"},
		},
	},
	{
		id: "R7", what: "slow and cut lines", run: badLines,
		tests: []named{{"aggregator", "TestLargeValuesTravelOverSlowLines"}},
	},
	{
		id: "R8", what: "a worker cut off", note: "from Redis, just after its claim and for longer than its lease",
		run:   partitions,
		tests: []named{{"aggregator", "TestStoreConformance|TestDeadLinesDoNotOutlastTheClaim"}},
	},
	{
		id: "R9", what: "delivered more than once", run: deliveredTwice,
		tests: []named{{"actions", "TestADuplicateAnswersWhatTheFirstDid"}},
	},
	{id: "R10", what: "lost and late records, 429, 502", run: unreliablePlatform, tests: []named{
		{"executor", "TestAnActivationBehindOthersIsNotLost|TestWhatARestartLostIsLostWithinSeconds"},
		{"executor", "TestAnOutageIsKnownAndBounded|TestInvocationsKeepWithinTheQuotas"},
		{"internal/cli", "TestAJobOutlivesItsPlatform"},
	}},
	{id: "R11", what: "damaged updates", tests: []named{
		{"aggregator", "TestEveryDamageIsRefused|TestForeignValuesAreRefused|TestValuesThatAreNotFiniteAreRefused|Fuzz"},
	}},
	{id: "R12", what: "full disk", run: fullDisk, tests: []named{
		{"internal/cli", "TestAFullDiskLosesNoRecord"},
		{"controller", "TestAJobStopsWhereItCannotKeepARound"},
		{"service", "TestTheRoomSetAsideIsEnough"},
		{"history/couchlite", "TestAFullDiskLeavesWhatWasThere"},
		{"platform", "TestAFullDiskLosesNothing"},
	}},
	{
		id: "R13", what: "the Nth call fails",
		note: "to Redis, the history, the platform and the disk; some calls of each kind, or all with DISDEL_TEST_EVERY_CALL",
		tests: []named{
			{"service", "TestTheNthCallFails|TestALostAnswerLosesNoJob|TestTheRoomSetAsideIsEnough"},
			{"history/couchlite", "TestAFailedCallToTheDiskLosesNoDocument|TestAFullDiskLeavesWhatWasThere"},
			{"internal/blobs", "TestAFailedCallToTheDiskLeavesNoHalfBlob"},
			{"internal/modelstore", "TestAFailedCallToTheDiskLosesNoModel"},
			{"dataset", "TestAFailedCallToTheDiskLosesNoDataSet"},
			{"platform", "TestAFailedCallToTheDiskLosesNoRecord"},
		},
	},
	{
		id: "R14", what: "clocks", note: "virtual time in controller and executor; Redis' own clock moved by an hour",
		run: clocks, tests: []named{
			{"controller", "TestAnOutageIsToldAndKept|TestAJobAlwaysEnds"}, {"executor", "TestAnOutageIsKnownAndBounded"},
		},
	},
	{id: "R15", what: "memory limits", tests: []named{
		{"platform", "TestMemoryLimitsAreKeptToTheFivePercent|TestTheWatchCountsChildren|TestTheRecordsPeakIsTheKernels"},
	}},
	{id: "R16", what: "timeouts, children, logs", tests: []named{
		{"platform", "TestEveryFailureHasOpenWhisksRecord|TestEndsReadAsOpenWhisksDo|TestAContainersChildrenGoWithIt"},
	}},
	{
		id: "R17", what: "sizes", note: "a model of 538 MB; skipped where less than 8 GB of memory are free", run: sizes,
		tests: []named{
			{"platform", "TestCodeHasALimitOfItsOwn|TestLargeBodiesAreReadFewAtATime"},
			{"internal/cli", "TestLargeNetworksAreReadWithinTheirLimits"},
		},
	},
	{
		id: "R18", what: "soak", run: soak,
		note: "a platform and a server for half a minute each, or half of DISDEL_ROBUST_SOAK",
	},
	{id: "R19", what: "data of earlier versions", note: "homes of six earlier versions", run: oldHomes, tests: []named{
		{"service", "TestAHomeOfTheVersionBeforeIsReadAndGoesOn|TestDocumentsOfANewerVersionAreRefused"},
		{"internal/cli", "TestAHomeOfEachEarlierVersion"},
		{"history", "TestNewerRecordsAreLeftAlone"},
		{"history/couchlite", "TestFilesOfEarlierVersionsAreReadAndIndexedOnce"},
	}},
	{
		id: "R20", what: "cancel, pause, resume at random", note: "120 calls by 4 clients on 6 jobs: transitions and results",
		run: stopsAndStarts,
	},
	{
		id: "R21", what: "readers of events", note: "40 that reconnect at random, 20 that never read", run: readers,
		tests: []named{
			{"service/api", "TestOnlySoManyAtOnce|TestAStreamEndsWithItsToken|TestEventsGoOnAfterTheLastID"},
			{"service", "TestASlowOnlookerIsNotWaitedFor"},
		},
	},
	{
		id: "R22", what: "telemetry fails", note: "scrapes that are never read; disdel pushes no telemetry", run: scrapes,
	},

	{id: "S1", what: "every route without the key", tests: []named{
		{"platform", "TestOnlyTheKeyOpensTheNamespace|TestTheGateStandsBeforeEveryHandler|TestNoWebPageCanCall"},
		{"history/couchlite", "TestOnlyThePasswordOpens"},
		{"service/api", "TestWhatIsRefused"},
		{"service/web", "TestSigningIn"},
	}},
	{id: "S2", what: "web pages of other sites", tests: []named{
		{"platform", "TestNoWebPageCanCall|TestListedPagesMayCall|TestOriginsAndHostsAreChecked"},
		{"service/api", "TestWhatIsRefused"},
		{"service/web", "TestThePolicy"},
	}},
	{id: "S3", what: "unsafe defaults", tests: []named{
		{"internal/cli", "TestScripts/platform$"}, {"service/api", "TestWhereItListensAndWhoRunsIt"},
	}},
	{id: "S4", what: "tenants apart", note: "answers are compared, not the time that they take", tests: []named{
		{"service/api", "TestAJobOverHTTPAndNobodyElses"},
		{"service/web", "TestTenantsSeeTheirOwn"},
		{"service", "TestTenantsHaveUsersOfTheirOwnOnRedis"},
		{"platform", "TestNamespacesAreIsolated|TestContainersServeOneNamespace"},
		{"platform", "TestPublicPackagesAreSharedAndPrivateOnesAreNot"},
	}},
	{id: "S5", what: "Redis users", tests: []named{{"aggregator", "TestATenantSeesOnlyItsOwn"}}},
	{id: "S6", what: "TLS", tests: []named{
		{"aggregator", "TestACertificateOfAnotherAuthorityIsDenied|TestACertificateThatIsNotTheServersIsDenied"},
		{"history", "TestAnUnknownCertificateIsDenied"},
	}},
	{id: "S7", what: "passwords leak", tests: []named{
		{"internal/cli", "TestNoPasswordIsSaidOfAnAddress|TestAJobLeavesNoPasswordAnywhere"},
		{"platform/local", "TestWsksKeyGoesToItsOwnServerAlone"},
		{"executor", "TestNoSecretIsToldOrSentElsewhere"},
		{"history", "TestNoPasswordFollowsARedirect|TestErrorsHaveNoPassword"},
		{"service/api", "TestNoSecretIsSaidAnywhere"},
	}},
	{id: "S8", what: "paths that leave", run: pathsThatLeave, tests: []named{
		{"dataset", "TestNamesCannotLeaveTheStore|TestRemoveDeletesItsOwnKeysAlone"},
		{"history", "TestADocumentIsNotBelievedItsID"},
	}},
	{id: "S9", what: "requests sent elsewhere", tests: []named{
		{"dataset", "TestDownloadsStayOnTheirHost"},
		{"history", "TestNoPasswordFollowsARedirect"},
		{"executor", "TestNoSecretIsToldOrSentElsewhere"},
		{"internal/cli", "TestABucketWithoutCredentialsIsRefusedAtOnce"},
	}},
	{id: "S10", what: "bombs", tests: []named{
		{"dataset", "TestPackedFilesThatUnpackToTooMuchAreRefused|TestHeadersTakeNoMemory|TestDownloadsAreBounded"},
		{"history/couchlite", "TestRequestsAreBounded"},
		{"internal/safetensors", "TestHeadersThatLie"},
		{"dataset/dense", "TestTablesThatFillMemoryAreRefused|TestPicturesThatTakeAnyMemoryAreRefused"},
		{"service/api", "TestUploadsAreBounded"},
	}},
	{id: "S11", what: "the runtime's port", tests: []named{
		{"runtime", "TestWhatIsRefused|TestInitCannotSetWhatIsTheContainersOwn|TestABodyThatNeverEndsIsGivenUp"},
		{"platform", "TestConnectionsWithoutAKeyAreBounded|TestTheTimeOfABody"},
	}},
	{
		id: "S12", what: "actions confined",
		note: "actions reach the network: they need Redis; a cluster has a NetworkPolicy",
		tests: []named{
			{"platform", "TestContainersSeeNothingOfThePlatform|TestContainersInheritNoDescriptors"},
			{"platform", "TestContainersHaveUsersOfTheirOwn|TestLimitsHoldForUsersOfTheirOwn|TestProcessesAreBounded"},
			{"platform", "TestAMemoryLimitCannotBeLeft|TestWhatIsHiddenIsNotSeen|TestActionsGainNoPrivileges"},
			{"platform", "TestConfinementIsTold|TestScriptsOfEveryKindHaveUsersOfTheirOwn|TestUsersAreToldByKind"},
			{"platform", "TestAClosedFolderShowsTheProgramAlone|TestAKindThatCouldOnlyRunAsRootIsRefused"},
		},
	},
	{
		id: "S13", what: "every decoder fuzzed", run: fuzzing,
		note: "5,000 inputs each, or DISDEL_ROBUST_FUZZ; libraries of others read the protocols of Redis and HTTP",
		tests: []named{
			{"dataset", "Fuzz"},
			{"internal/safetensors", "Fuzz"},
			{"internal/modelstore", "Fuzz"},
			{"model", "Fuzz"},
			{"controller/jobfile", "Fuzz"},
			{"aggregator", "Fuzz"},
			{"aggregator/exchange", "Fuzz"},
			{"dataset/dense", "Fuzz"},
			{"dataset/sparse", "Fuzz"},
			{"runtime", "Fuzz"},
			{"history/couchlite", "Fuzz"},
			{"service/infer", "Fuzz"},
			{"service/api", "Fuzz"},
			{"history", "Fuzz"},
			{"executor", "Fuzz"},
			{"platform", "Fuzz"},
			{"platform/local", "Fuzz"},
		},
	},
	{
		id: "S14", what: "150 bad job files",
		tests: []named{{"controller/jobfile", "TestBadFilesSayWhatIsWrongWhereAndHowToMendIt"}},
	},
	{id: "S15", what: "text that acts", tests: []named{
		{"internal/cli", "TestNoOutputActsOnTheTerminal|TestControlCharactersDoNotReachTheTerminal"},
		{"internal/report", "TestHostileTextMakesNoMarkup"},
	}},
	{
		id: "S16", what: "forged log lines", note: "lines are quoted; changes and refusals leave an audit line",
		tests: []named{{"platform", "TestARequestsLine"}, {"service/api", "TestEveryChangeLeavesAnAuditLine"}},
	},
	{
		id: "S17", what: "a tenant's flood", run: floods,
		note: "the server stays below 512 MB; 99 of 100 requests of another tenant take at most 1 s on a quiet machine",
		tests: []named{
			{"service/api", "TestNoTenantPassesItsShare|TestAFullServerHasRoomForItsOperator|TestOnlySoManyAtOnce"},
			{"service/api", "TestSubmissionsSayABoundedAmount|TestAListHasAPageOfBoundedSize"},
			{"scheduler", "TestPriorityTakesNoShareOfOthers|TestPriorityIsNoTicketPastOthers"},
			{"service", "TestATenantStaysWithinItsDiskQuota"},
			{"service/infer", "TestWideTablesTakeNoMemory"},
		},
	},
	{
		id: "S18", what: "what the program is made of", run: madeOf,
		note: "lists of parts and licences; two builds on one machine, from two folders, have the same bytes",
	},
	{id: "S19", what: "container and chart", tests: []named{
		{"deploy/cluster", "TestManifestsFitTogether|TestManifestsAreKubernetes"},
	}},
	{id: "S20", what: "bits flipped at rest", tests: []named{
		{"history/couchlite", "TestDamageIsNamedOrHitsNothing"},
		{"platform", "TestADamagedStateIsNeverBelieved"},
		{"dataset", "TestEditedAndSwappedManifestsAreRefused|TestDamagedChunksAreRefusedByName"},
		{"internal/modelstore", "TestEditedDescriptionsAreRefused|TestTheNewestWholeCheckpointIsFound|TestWeightsComeBackOrAreRefused"},
	}},
}
