"""Which contract tests a short run does over TLS: the fewest that call every operation of the adapters.

TLS changes how a connection is made and not what is said over it, so not every test need pay for it each time. Of the
rest, a short run does a tenth, and ``make test-long`` all. The choice was made by recording which functions of the
adapters each test calls, and taking the test that calls the most new ones until none was left.
"""

from collections.abc import Mapping

CHOSEN: Mapping[str, frozenset[str]] = {
    "test_accounts.py": frozenset(
        {
            "TestBudgets::test_after_losing_everything_jobs_that_beat_are_in_again_with_what_they_used",
        }
    ),
    "test_audit_store.py": frozenset(
        {
            "test_the_trail_is_filtered_by_kind_and_by_text_of_any_case",
        }
    ),
    "test_batch_store.py": frozenset(
        {
            "test_a_batch_is_held_by_one_until_its_lease_lapses",
            "test_a_file_is_found_by_its_id_and_listed_for_its_tenant_alone",
            "test_a_line_keeps_its_first_result",
            "test_batches_are_listed_for_their_tenant_the_newest_first",
            "test_files_count_for_the_quota_until_they_are_removed",
            "test_files_whose_time_is_over_and_ids_without_a_file_are_found",
            "test_time_deletes_the_results_of_an_ended_batch_and_the_batch",
        }
    ),
    "test_cache.py": frozenset(
        {
            "test_a_key_is_new_again_when_its_value_is_over_or_dropped",
            "test_a_second_put_replaces_value_and_time",
        }
    ),
    "test_crowds.py": frozenset(
        {
            "TestCrowds::test_a_crowd_takes_as_many_as_its_limit",
            "TestCrowds::test_who_leaves_makes_room_once",
        }
    ),
    "test_journal.py": frozenset(
        {
            "test_a_record_that_is_refused_fails_its_own_caller_only",
            "test_many_appends_at_once_are_all_written",
        }
    ),
    "test_leases.py": frozenset(
        {
            "test_a_dropped_lease_ends_now_and_dropping_again_is_harmless",
            "test_after_losing_everything_leases_are_missing_and_the_run_id_says_why",
        }
    ),
    "test_own_lanes.py": frozenset(
        {
            "test_declaring_again_keeps_what_waits",
            "test_a_full_own_lane_refuses_and_nothing_is_lost_or_doubled",
            "test_a_job_given_back_late_goes_to_the_lane_it_belongs_to",
        }
    ),
    "test_pinned_store.py": frozenset(
        {
            "TestPinnedSessions::test_a_pin_outlives_the_words_of_its_turns",
            "TestPinnedSessions::test_erasing_a_session_erases_the_keys_of_its_pins",
            "TestPinnedSessions::test_sessions_on_a_version_are_counted_once_while_they_are_used_and_not_moved",
        }
    ),
    "test_pins.py": frozenset(
        {
            "TestPins::test_a_dropped_pin_is_gone",
            "TestPins::test_a_move_is_told_until_a_turn_was_accepted_under_it",
        }
    ),
    "test_presences.py": frozenset(
        {
            "test_an_earlier_life_takes_nothing_from_a_later_one",
        }
    ),
    "test_queue.py": frozenset(
        {
            "test_declaring_again_keeps_what_waits",
            "test_acking_twice_is_harmless",
            "test_depths_count_what_waits_and_not_what_is_taken",
        }
    ),
    "test_registry_store.py": frozenset(
        {
            "TestChanges::test_several_changes_are_made_together_or_not_at_all",
            "TestAuditTrail::test_a_change_tells_who_made_it_when_and_what_it_was",
            "TestChanges::test_changes_made_at_once_are_numbered_without_gaps",
        }
    ),
    "test_sessions_store.py": frozenset(
        {
            "TestBranches::test_the_turns_of_sessions_come_in_the_order_of_their_opening",
            "TestListedConversations::test_they_come_page_by_page_the_newest_first",
            "TestConversations::test_a_change_does_not_bring_an_erased_one_back",
            "TestConversations::test_a_removed_item_is_hidden_and_its_words_are_gone",
            "TestErasing::test_tombstones_are_found_by_their_time",
            "TestErasing::test_tombstones_leave_when_nothing_can_be_on_its_way",
            "TestIdling::test_a_session_that_nobody_goes_on_with_is_forgotten_as_one",
            "TestIdling::test_conversations_idle_by_their_last_use_or_turn",
            "TestRetainedTurns::test_they_are_listed_page_by_page_by_tenant_prefix_and_deployment",
            "TestTurnsOfASession::test_a_turn_that_runs_or_failed_has_said_nothing",
            "TestTurnsOfASession::test_sessions_that_went_on_from_another_are_found",
        }
    ),
    "test_shares.py": frozenset(
        {
            "test_after_losing_everything_all_tenants_are_equal_again",
            "test_a_charge_tells_the_counters_that_it_leaves",
        }
    ),
    "test_storage_store.py": frozenset(
        {
            "test_a_census_counts_sessions_batches_and_files_of_all_tenants",
            "test_a_removed_item_is_given_back_once",
        }
    ),
    "test_store.py": frozenset(
        {
            "TestKeys::test_a_revoked_key_keeps_its_first_time",
            "TestKeys::test_of_many_keys_the_revoked_ones_are_told",
            "TestPurging::test_the_turns_that_ended_last_come_without_their_text",
            "TestUnfinished::test_the_oldest_unfinished_turn_of_a_version_says_whose_it_is",
            "TestUnfinished::test_unfinished_turns_are_counted_by_deployment_and_version",
            "test_an_open_store_answers",
        }
    ),
    "test_tenants_store.py": frozenset(
        {
            "TestAccess::test_a_key_comes_with_its_tenant_and_plan",
            "TestKeysOfATenant::test_a_key_that_is_not_there_is_not_rotated",
            "TestKeysOfATenant::test_the_last_use_is_the_latest_that_was_told",
            "TestPlans::test_a_plan_is_made_once_and_then_changed",
            "TestPlans::test_plans_are_listed_by_name_and_can_go",
            "TestTenants::test_a_change_sets_all_but_id_place_and_age",
            "TestTenants::test_an_id_is_given_once",
            "TestTenants::test_places_count_from_0_and_one_that_is_free_is_given_again",
            "TestUsage::test_replicas_time_is_raised_and_keeps_its_first_price_and_payer",
        }
    ),
    "test_terms.py": frozenset(
        {
            "test_every_term_is_above_the_one_before",
        }
    ),
    "test_token_log.py": frozenset(
        {
            "TestAppending::test_an_append_wakes_the_streams_listeners",
            "TestOpening::test_an_unknown_job_is_missing_to_everybody",
            "TestViews::test_several_jobs_are_looked_at_together_and_without_their_chunks",
        }
    ),
    "test_token_log_loss.py": frozenset(
        {
            "TestForgetting::test_a_running_stream_is_not_forgotten",
        }
    ),
    "test_wakeups.py": frozenset(
        {
            "test_a_listener_hears_what_comes_after_it_began",
            "test_listeners_are_counted_by_channel_or_nobody_can_tell",
        }
    ),
    "test_web_sessions_store.py": frozenset(
        {
            "test_a_session_is_renewed_and_never_shortened",
            "test_a_session_that_was_ended_is_gone_and_its_neighbour_stays",
            "test_of_one_key_the_newest_stay_and_other_keys_are_not_counted",
        }
    ),
}
"""Names of tests by their file."""


def is_over_tls(nodeid: str) -> bool:
    """Whether a contract test runs over TLS, by its parameter."""
    return "/contracts/" in nodeid and "-tls" in nodeid.partition("[")[2]


def is_left(nodeid: str) -> bool:
    """Whether a test over TLS is none of those chosen."""
    file, _, test = nodeid.partition("[")[0].rpartition("/")[2].partition("::")
    return is_over_tls(nodeid) and test not in CHOSEN.get(file, frozenset())
