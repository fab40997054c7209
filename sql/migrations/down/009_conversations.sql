-- Every conversation goes: nothing else holds what was asked and answered.
DROP TABLE IF EXISTS citations;
DROP TABLE IF EXISTS message_sources;
DROP TABLE IF EXISTS messages;
DROP TABLE IF EXISTS conversations;
DROP TABLE IF EXISTS conversation_groups;
